#include "host/session/finding_publisher.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "host/device/device_readings.h"
#include "host/event/thread_state.h"
#include "host/finding/place_of.h"

namespace numsan {
namespace {

using NameRole = LiveNames::TensorName::Role;

EscapeInto kind_of(NameRole role) {
    return role == NameRole::Buffer           ? EscapeInto::Buffer
           : role == NameRole::OptimizerState ? EscapeInto::OptimizerState
                                              : EscapeInto::Parameter;
}

}  // namespace

/// Whether code that torch.fx wrote stands in a stack of what is reported first here.
bool FindingPublisher::in_generated(const Outcome& outcome) const {
    const auto stands_in = [&](StackId stack) {
        const std::vector<SourceFrame> frames = stacks_.resolve(stack);
        return std::any_of(frames.begin(), frames.end(),
                           [](const SourceFrame& frame) { return is_from_fx(frame.file); });
    };
    return std::any_of(outcome.escaped.begin(), outcome.escaped.end(), [&](const EscapedBirth& escaped) {
        return !escaped.again && (stands_in(escaped.birth.stack) || stands_in(escaped.birth.forward_stack));
    });
}

TensorReader FindingPublisher::reader() const noexcept {
    const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
    TensorReader made;
    if (adapter == nullptr) return made;
    made.storage_of = adapter->storage_of;
    made.gradient_of = adapter->gradient_of;
    return made;
}

bool FindingPublisher::publish(const Outcome& outcome, const LiveNames* known) {
    if (outcome.escaped.empty() && outcome.contaminated.empty() && outcome.sent.empty()) return false;
    const BusyThread busy;
    // A tensor that a known finding reached later is worth a name only if the look-up happens anyway.
    const bool fresh = std::any_of(outcome.escaped.begin(), outcome.escaped.end(),
                                   [](const EscapedBirth& escaped) { return !escaped.again; });
    const bool shown = fresh && reporter_.has_room();
    if (shown) learn_rank();
    TensorReader tensors = reader();
    tensors.brief = !shown;
    tensors.generated = shown && in_generated(outcome);
    for (const EscapedBirth& escaped : outcome.escaped) {
        if (!shown || escaped.again) continue;
        tensors.sources_of.insert(tensors.sources_of.end(), {escaped.birth.stack, escaped.birth.forward_stack});
    }
    std::vector<BirthId> added;
    if (known != nullptr && shown) {
        LiveNames names = *known;
        tensors.brief = true;  // the rest of it is known
        LiveNames lines = stacks_.names(tensors);
        names.traced = std::move(lines.traced);
        names.kernels = std::move(lines.kernels);
        names.sources = std::move(lines.sources);
        added = reporter_.add(outcome, names, counts_.now(), tensors);
    } else if (known != nullptr) {
        added = reporter_.add(outcome, *known, counts_.now(), tensors);
    } else if (shown ||
               (!outcome.contaminated.empty() && look_ups_.fetch_add(1, std::memory_order_relaxed) < kMaxLookUps)) {
        const LiveNames names = stacks_.names(tensors);
        added = reporter_.add(outcome, names, counts_.now(), tensors);
    } else {
        added = reporter_.add(outcome, {}, counts_.now(), tensors);
    }
    show(added);
    if (shown) tell_job(outcome);
    return fresh;
}

bool FindingPublisher::name_state(bool kept, bool last) {
    const std::vector<StateWrite> writes = verdict_.take_state_writes();
    if (writes.empty() && !kept) return false;
    if (!last && look_ups_.fetch_add(1, std::memory_order_relaxed) >= kMaxLookUps) return false;
    const LiveNames names = [this] {
        const BusyThread busy;
        return stacks_.names(reader());
    }();
    Outcome outcome;
    for (const StateWrite& write : writes) {
        const auto it = names.tensors.find(write.impl);
        if (it == names.tensors.end() || it->second.role == NameRole::Gradient) continue;
        const void* storage = it->second.storage;
        if (storage != write.storage && device_storage(storage) != write.storage) continue;  // another tensor
        verdict_.confirm(write, kind_of(it->second.role), outcome);
    }
    std::vector<KeptTensor> tensors;
    for (const auto& [impl, tensor] : names.tensors) {
        if (!kept || tensor.role == NameRole::Gradient || tensor.storage == nullptr) continue;
        tensors.push_back({impl, tensor.storage, kind_of(tensor.role)});
        tensors.push_back({impl, device_storage(tensor.storage), kind_of(tensor.role)});
    }
    verdict_.find_contaminated(tensors, outcome);
    return publish(outcome, &names);
}

bool FindingPublisher::decide_pending(bool failed, bool rests, bool last) {
    learn_rank();
    const std::optional<LiveNames> gradients = ask_for_gradients(rests);
    Outcome outcome;
    verdict_.finish(failed, outcome);
    bool fresh = publish(outcome, gradients.has_value() ? &*gradients : nullptr);
    fresh = name_state(verdict_.may_have_contaminated(), true) || fresh;
    Outcome absorbed;
    verdict_.report_absorbed(last, absorbed);
    publish(absorbed);
    attend_job(true);
    return fresh;
}

/// Bad gradients are left at the end: the program may have let go of them, or replaced them.
std::optional<LiveNames> FindingPublisher::ask_for_gradients(bool rests) {
    if (!verdict_.has_undecided_gradients()) return {};
    LiveNames names = [&] {
        const BusyThread busy;
        TensorReader tensors = reader();
        tensors.gradients_rest = rests;
        return stacks_.names(tensors);
    }();
    std::map<const void*, std::set<const void*>> leaves;
    for (const auto& [impl, tensor] : names.tensors) {
        if (tensor.role == NameRole::Parameter) leaves[impl];
    }
    for (const auto& [impl, tensor] : names.tensors) {
        if (tensor.role != NameRole::Gradient || tensor.leaf == nullptr) continue;
        leaves[tensor.leaf].insert({tensor.storage, device_storage(tensor.storage)});
        if (tensor.storage == nullptr) leaves.erase(tensor.leaf);  // it has one, in a place that is not known
    }
    verdict_.keep_gradients(leaves);
    return names;
}

LiveNames FindingPublisher::names() {
    const BusyThread busy;
    return stacks_.names(reader());
}

void FindingPublisher::show(const std::vector<BirthId>& births) {
    for (const BirthId birth : births) {
        const MarkFinding mark = mark_.load(std::memory_order_relaxed);
        if (mark == nullptr) return;
        if (const std::optional<Finding> finding = reporter_.finding_of(birth)) mark(*finding);
    }
}

/// The one that was born first; a rank leaves one.
void FindingPublisher::tell_job(const Outcome& outcome) {
    std::optional<Finding> first;
    for (const EscapedBirth& escaped : outcome.escaped) {
        if (escaped.again || escaped.severity != Severity::Error) continue;
        std::optional<Finding> finding = reporter_.finding_of(escaped.birth.id);
        if (finding && (!first || finding->seq < first->seq)) first = std::move(finding);
    }
    if (first) job_.found(*first, reporter_.run(), reporter_.file_name());
}

void FindingPublisher::attend_job(bool last) {
    if (!job_.is_due(last)) return;
    const BusyThread busy;
    const RunSummary run = reporter_.run();
    if (const std::string said = job_.attend(run, last); !said.empty()) reporter_.say(said);
    if (const std::string document = job_.take_document(run); !document.empty()) reporter_.write_job(document);
}

void FindingPublisher::step_ended() noexcept {
    if (!asked_rank_in_step_.exchange(true)) learn_rank();
    try {
        attend_job(false);
    } catch (...) {
        // Out of memory: the job is not told.
    }
}

void FindingPublisher::learn_rank() noexcept {
    try {
        const BusyThread busy;
        const bool unknown = ask_rank_ != nullptr && !reporter_.knows_rank();
        const std::optional<ProcessRank> rank = unknown ? ask_rank_(stacks_.on_own_thread) : std::nullopt;
        if (rank.has_value()) reporter_.use(*rank);
    } catch (...) {
        // Out of memory: the report goes without it.
    }
}

}  // namespace numsan
