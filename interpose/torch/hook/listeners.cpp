#include "interpose/torch/hook/listeners.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace numsan {
namespace {

using Start = at::RecordFunctionCallback::StartCallback;
constexpr size_t kMaxListeners = 4;
std::array<std::atomic<Start>, kMaxListeners> g_ours;

/// torch lists listeners nowhere but among those that are due for a call: a listener of another library that samples
/// may be taken for none, and has one of its draws used up; asked for collectives only.
bool only_ours(at::RecordScope scope) {
    const auto active = at::getStepCallbacksUnlessEmpty(scope);
    if (!active.has_value()) return true;
    return std::all_of(active->callbacks_.begin(), active->callbacks_.end(), [](const auto& callback) {
        return std::any_of(g_ours.begin(), g_ours.end(),
                           [&](const auto& own) { return own.load() == callback.start_; });
    });
}

}  // namespace

void note_as_ours(Start start) {
    for (auto& own : g_ours) {
        Start known = nullptr;
        if (own.compare_exchange_strong(known, start) || known == start) return;
    }
}

void listen(const at::RecordFunctionCallback& callback) {
    note_as_ours(callback.start());
    at::addGlobalCallback(callback);
}

ScopedListener::ScopedListener(const at::RecordFunctionCallback& callback) {
    note_as_ours(callback.start());
    handle_ = at::addThreadLocalCallback(callback);
}
ScopedListener::~ScopedListener() { at::removeCallback(handle_); }

QuietScopes::QuietScopes(bool wanted) {
    if (wanted && only_ours(at::RecordScope::FUNCTION) && only_ours(at::RecordScope::USER_SCOPE)) guard_.emplace(false);
}

}  // namespace numsan
