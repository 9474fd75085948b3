// What is told of a session with the names of what the program keeps: findings, and the state that they reached.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {

TensorReader Session::tensor_reader() const noexcept {
    const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
    return adapter != nullptr ? TensorReader{adapter->storage_of, adapter->gradient_of} : TensorReader{};
}

/// Bad values were written into tensors that may be buffers, moments or averages; or findings may have reached what the
/// program keeps (`kept`). Asks for names, a few times in a run and at its end (`last`).
void Session::name_state_writes(bool kept, bool last) noexcept {
    using Role = LiveNames::TensorName::Role;
    try {
        const std::vector<StateWrite> writes = verdict_.take_state_writes();
        if (writes.empty() && !kept) return;
        if (!last && look_ups_.fetch_add(1, std::memory_order_relaxed) >= kMaxLookUps) return;
        Thread& thread = this_thread();
        thread.busy = true;
        const LiveNames names = stacks_.names(tensor_reader());
        thread.busy = false;
        const auto kind_of = [](Role role) {
            return role == Role::Buffer           ? EscapeInto::Buffer
                   : role == Role::OptimizerState ? EscapeInto::OptimizerState
                                                  : EscapeInto::Parameter;
        };
        Outcome outcome;
        for (const StateWrite& write : writes) {
            const auto it = names.tensors.find(write.impl);
            if (it == names.tensors.end() || it->second.role == Role::Gradient) continue;
            const void* storage = it->second.storage;
            if (storage != write.storage && device_storage(storage) != write.storage) continue;  // another tensor
            verdict_.confirm(write, kind_of(it->second.role), outcome);
        }
        std::vector<KeptTensor> tensors;
        for (const auto& [impl, tensor] : names.tensors) {
            if (!kept || tensor.role == Role::Gradient || tensor.storage == nullptr) continue;
            tensors.push_back({impl, tensor.storage, kind_of(tensor.role)});
            tensors.push_back({impl, device_storage(tensor.storage), kind_of(tensor.role)});
        }
        verdict_.find_contaminated(tensors, outcome);
        publish(outcome, &names);
    } catch (...) {
        fail("out of memory or a failure while naming state");
    }
}

/// Bad gradients are left at the end: the program may have let go of them, or replaced them.
std::optional<LiveNames> Session::ask_for_gradients() {
    using Role = LiveNames::TensorName::Role;
    if (!verdict_.has_undecided_gradients()) return {};
    Thread& thread = this_thread();
    thread.busy = true;
    TensorReader reader = tensor_reader();
    reader.gradients_rest = !halting_.load();
    LiveNames names = stacks_.names(reader);
    thread.busy = false;
    std::map<const void*, std::set<const void*>> leaves;
    for (const auto& [impl, tensor] : names.tensors) {
        if (tensor.role == Role::Parameter) leaves[impl];
    }
    for (const auto& [impl, tensor] : names.tensors) {
        if (tensor.role != Role::Gradient || tensor.leaf == nullptr) continue;
        leaves[tensor.leaf].insert({tensor.storage, device_storage(tensor.storage)});
        if (tensor.storage == nullptr) leaves.erase(tensor.leaf);  // it has one; where, nobody can say
    }
    verdict_.keep_gradients(leaves);
    return names;
}

/// `known`: the look-up of names that was just made.
void Session::publish(const Outcome& outcome, const LiveNames* known) {
    if (outcome.escaped.empty() && outcome.contaminated.empty()) return;
    Thread& thread = this_thread();
    thread.busy = true;
    // A tensor that a known finding reached later is worth a name only if the look-up happens anyway.
    const bool fresh = std::any_of(outcome.escaped.begin(), outcome.escaped.end(),
                                   [](const EscapedBirth& escaped) { return !escaped.again; });
    if (fresh) learn_rank();
    const TensorReader reader = tensor_reader();
    if (known != nullptr) {
        reporter_.add(outcome, *known, counts(), reader);
    } else if (fresh ||
               (!outcome.contaminated.empty() && look_ups_.fetch_add(1, std::memory_order_relaxed) < kMaxLookUps)) {
        const LiveNames names = stacks_.names(reader);
        reporter_.add(outcome, names, counts(), reader);
    } else {
        reporter_.add(outcome, {}, counts(), reader);
    }
    thread.busy = false;
    // What finish() decides comes here, too.
    if (options_.halt && fresh && !finished_.load() && reporter_.has(Severity::Error)) {
        reporter_.say("halt=1: stopping at the first error");
        halting_.store(true);
        finish(static_cast<int>(options_.exitcode));
        facts_.leave(static_cast<int>(options_.exitcode));
    }
}

}  // namespace numsan
