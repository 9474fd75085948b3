// What the verdict decides after a check, at a step and at the end of a run.
#include <algorithm>

#include "host/ops/operands.h"

#include "host/verdict/verdict.h"

namespace numsan {

/// Files are read for it, which may take long: under no lock.
std::optional<ValueChecks::Question> Verdict::look_at_check(const OpEvent& event, const OpContext& context) {
    std::optional<ValueChecks::Question> asked;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        asked = checks_.question(event, context);
    }
    if (asked && !asked->shown) asked->shown = stacks_.after_check(asked->check, context.stack);
    return asked;
}

void Verdict::node(const NodeEvent& event, const OpContext& context) {
    if (event.variable == nullptr) return;
    const TensorView* end = event.inputs + event.input_count;
    const auto bad = [&](const TensorView& t) { return scannable(t) && scanner_.range(t).suspicious; };
    const auto may_hold = [&](const TensorView& t) { return ledger_.may_hold(t.storage); };
    const bool unseen = context.after_compiled && std::any_of(event.inputs, end, bad);
    if (!gradients_.any_wait() && !unseen && std::none_of(event.inputs, end, may_hold)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    gradients_.arrive(event, context, unseen);
}

bool Verdict::has_undecided_gradients() {
    if (!gradients_.any_wait()) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return gradients_.undecided();
}

void Verdict::keep_gradients(const std::map<const void*, std::set<const void*>>& leaves) {
    const std::lock_guard<std::mutex> lock(mutex_);
    gradients_.keep(leaves);
}

void Verdict::zero_grad() {
    const std::lock_guard<std::mutex> lock(mutex_);
    gradients_.zero();
}

void Verdict::begin_step(const OpContext& context) {
    last_step_ = std::max(last_step_, context.step);
    ledger_.begin_step(last_step_);
}

void Verdict::tell_loss(double value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    losses_.tell(value);
}

std::vector<StateWrite> Verdict::take_state_writes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kept_.take_writes();
}

void Verdict::confirm(const StateWrite& write, EscapeInto into, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.confirm(write, into, outcome);
}

bool Verdict::optimizer_end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kept_.end_step();
}

void Verdict::find_contaminated(const std::vector<KeptTensor>& kept, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.find_contaminated(kept, outcome);
}

bool Verdict::may_have_contaminated() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return escapes_.reported_any() && !ledger_.entries().empty();
}

void Verdict::optimizer_begin(Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stepped_ = true;
    checks_.step();
    for (const PendingPolicy& policy : kPendingPolicies) {
        if (policy.at_step == PendingFate::Report)
            escapes_.report_all(pending_.take(policy.reason), policy.severity, outcome);
        if (policy.at_step == PendingFate::Drop) pending_.of(policy.reason).clear();
    }
}

void Verdict::finish(bool failed, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const PendingPolicy& policy : kPendingPolicies) {
        if (policy.at_end == PendingFate::Report)
            escapes_.report_all(pending_.take(policy.reason), policy.severity, outcome);
        if (policy.at_end == PendingFate::Ask) decide_at_end(policy, failed, outcome);
    }
}

void Verdict::report_absorbed(bool last, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (absorbed_) absorbed_->report(last, outcome);
}

void Verdict::decide_at_end(const PendingPolicy& policy, bool failed, Outcome& outcome) {
    switch (policy.reason) {
        case PendingReason::Gradient: return gradients_.end(stepped_, outcome);
        case PendingReason::Scaler: return scalers_.end(outcome);
        case PendingReason::Checked: return checks_.end(failed, outcome);
        case PendingReason::NearLimitUnstepped:
            if (last_step_ == 0) escapes_.report_all(pending_.take(policy.reason), policy.severity, outcome);
            return;
        default: return;  // the table says it
    }
}

std::optional<Birth> Verdict::birth(BirthId id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Birth* found = store_.find(id);
    return found != nullptr ? std::optional(*found) : std::nullopt;
}

void Verdict::forget_pending() {
    pending_.clear();
    kept_.forget();
    if (absorbed_) absorbed_->begin_child();
    store_.begin_child();
}

Verdict::Counts Verdict::counts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {store_.made(), escapes_.escaped(), std::max<int64_t>(store_.made() - escapes_.escaped(), 0),
            scalers_.skips(), scalers_.skipped_steps()};
}

std::map<std::string, int64_t> Verdict::forgotten() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {{"bad tensors", ledger_.forgotten()},
            {"births", store_.forgotten()},
            {"waiting escapes", pending_.forgotten()},
            {"places", escapes_.forgotten()}};
}

}  // namespace numsan
