// What a session tells of what it found: outcomes to the reporter, names where only they say what a tensor is.
#include <unistd.h>

#include <algorithm>

#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {

/// Bad values were written into tensors that may be buffers, moments or averages: asks for their names, a few times in
/// a run.
void Session::name_state_writes() noexcept {
    try {
        const std::vector<StateWrite> writes = verdict_.take_state_writes();
        if (writes.empty() || look_ups_.fetch_add(1, std::memory_order_relaxed) >= kMaxLookUps) return;
        Thread& thread = this_thread();
        thread.busy = true;
        const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
        const LiveNames names = stacks_.names(adapter != nullptr ? adapter->storage_of : nullptr);
        thread.busy = false;
        Outcome outcome;
        for (const StateWrite& write : writes) {
            const auto it = names.tensors.find(write.impl);
            if (it == names.tensors.end()) continue;
            const void* storage = it->second.storage;
            if (storage != write.storage && device_storage(storage) != write.storage) continue;  // another tensor
            switch (it->second.role) {
                case LiveNames::TensorName::Role::Buffer: verdict_.confirm(write, EscapeInto::Buffer, outcome); break;
                case LiveNames::TensorName::Role::OptimizerState:
                    verdict_.confirm(write, EscapeInto::OptimizerState, outcome);
                    break;
                case LiveNames::TensorName::Role::Parameter:
                    verdict_.confirm(write, EscapeInto::Parameter, outcome);
                    break;
                case LiveNames::TensorName::Role::Gradient: break;
            }
        }
        publish(outcome);
    } catch (...) {
        fail("out of memory or a failure while naming state");
    }
}

void Session::publish(const Outcome& outcome) {
    if (outcome.escaped.empty() && outcome.contaminated.empty()) return;
    Thread& thread = this_thread();
    thread.busy = true;
    // A tensor that a known finding reached later is worth a name only if the look-up happens anyway.
    const bool fresh = std::any_of(outcome.escaped.begin(), outcome.escaped.end(),
                                   [](const EscapedBirth& escaped) { return !escaped.again; });
    if (fresh || (!outcome.contaminated.empty() && look_ups_.fetch_add(1, std::memory_order_relaxed) < kMaxLookUps)) {
        const LiveNames names = stacks_.names(nullptr);
        reporter_.add(outcome, names, counts());
    } else {
        reporter_.add(outcome, {}, counts());
    }
    thread.busy = false;
    if (options_.halt && fresh && reporter_.has(Severity::Error)) {
        reporter_.say("halt=1: stopping at the first error");
        finish(static_cast<int>(options_.exitcode));
        _exit(static_cast<int>(options_.exitcode));
    }
}

}  // namespace numsan
