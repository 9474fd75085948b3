#include "interpose/libraries/listened_call.h"

#include <atomic>

namespace numsan {
namespace {

std::atomic<LibraryListener*> g_listener{nullptr};
thread_local constinit bool open = false;

}  // namespace

void ListenedCall::listen(LibraryListener* listener) noexcept { g_listener.store(listener, std::memory_order_release); }

bool ListenedCall::is_open() noexcept { return open; }

ListenedCall::ListenedCall() noexcept : listener_(open ? nullptr : g_listener.load(std::memory_order_acquire)) {}

void ListenedCall::set_open(bool now) noexcept { open = now; }

void ListenedCall::begin(LibraryCall* calls, size_t count) const noexcept {
    open = true;
    for (size_t i = 0; i < count; ++i) listener_->before_call(calls[i]);
}

void ListenedCall::end(LibraryCall* calls, size_t count, bool made) const noexcept {
    for (size_t i = 0; i < count; ++i) listener_->after_call(calls[i], made);
    open = false;
}

}  // namespace numsan
