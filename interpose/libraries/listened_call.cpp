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

void ListenedCall::begin() noexcept {
    open = true;
    listener_->before_call(call);
}

void ListenedCall::end(bool made) noexcept {
    listener_->after_call(call, made);
    open = false;
}

}  // namespace numsan
