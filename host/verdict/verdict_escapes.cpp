// What escapes: into the loss, a parameter, state, a collective, the host. Of gradients see verdict_gradients.cpp.
#include <algorithm>
#include <cstring>

#include "host/cause/magnitude_history.h"
#include "host/ops/op_traits.h"
#include "host/verdict/verdict.h"

namespace numsan {
namespace {

/// Moments are written in the step of a finding, averages of parameters and buffers at the latest before the next ends.
constexpr int kStepsToLook = 2;

/// Whether op `seq` leads to the loss by ops that read no parameter: it is a term of the loss, whatever runs after it.
bool is_term(const Lineage& lineage, const void* loss, int64_t seq) {
    bool found = false;
    lineage.ancestors(loss, INT64_MAX, [&](const Lineage::Record& record, int) {
        found = found || record.seq == seq;
        return !found && record.seq > seq && !traits_of(record.op->name).has(kLayer) && !lineage.reads_state(record);
    });
    return found;
}

/// What makes two births the same to a reader. An overflow is none the less that for having diverged to it meanwhile.
std::string place_of(const Birth& birth) {
    const bool diverged = birth.mechanism == Mechanism::HYPER;
    return birth.op + "|" + std::to_string(birth.has_forward ? birth.forward_stack : birth.stack) + "|" + birth.node +
           "|" + to_string(diverged ? Mechanism::OVF : birth.mechanism) +
           (birth.made_at ? "|" + birth.made_at->file + ":" + std::to_string(birth.made_at->line) : "");
}

}  // namespace

void Verdict::escapes_of(const OpEvent& event, const OpContext& context, const Kinds& before, Outcome& outcome) {
    const OpClass cls = event.op->op_class;
    if (cls == OpClass::Collective && !before.finite()) {
        escape(before, EscapeInto::Collective, nullptr, context, Severity::Error, outcome);
    } else if (cls == OpClass::HostRead) {
        Kinds read = before;
        if (read.finite() && event.input_count == 1 && scannable(event.inputs[0]) &&
            scanner_.range(event.inputs[0]).suspicious) {
            read = births_.external(event.inputs[0], event, context, scanner_.health(event.inputs[0]));
            read.since = context.step;
            ledger_.set(event.inputs[0], read);
        }
        postpone(read, EscapeInto::Host, nullptr, context, PendingReason::HostRead);
        if (event.input_count == 1 && !scannable(event.inputs[0])) answered(event, context);
    } else if (cls == OpClass::LossScale) {
        if (std::strcmp(event.op->name, "aten::_amp_update_scale_") == 0)
            scale_changes(event, outcome);
        else
            scaler_looks(event);
    } else if (is_root(event) && stacks_.is_loss(context.stack)) {
        loss_begins(event, context, before, outcome);
    }
}

void Verdict::op_failed(const OpEvent& event, const OpContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        const Kinds* known = ledger_.find(input);
        if (known == nullptr || known->finite() || !scannable(input) || !scanner_.range(input).suspicious) continue;
        postpone(*known, EscapeInto::Host, nullptr, context, PendingReason::HostRead);
        const std::string fact = "`" + std::string(event.op->name) + "` read it and failed";
        for (const Kind kind : kNonFiniteKinds) {
            Birth* birth = births_.find(known->of(kind));
            if (birth == nullptr) continue;
            std::vector<std::string>& evidence = birth->evidence;
            if (std::find(evidence.begin(), evidence.end(), fact) == evidence.end()) evidence.push_back(fact);
        }
    }
}

/// backward() is about to start from the operand.
void Verdict::loss_begins(const OpEvent& event, const OpContext& context, const Kinds& before, Outcome& outcome) {
    const TensorView& loss = event.inputs[0];
    if (!scannable(loss)) return;
    loss_parameter_read_ = context.last_parameter_read;
    loss_seq_ = context.seq;
    const Health health = scanner_.health(loss);
    losses_.add(health.finite > 0 ? health.absmax : 0);
    births_.set_bad_loss(0);
    if (health.kinds() == 0) {
        if (before.flushed != 0 && health.absmax == 0)
            postpone(before.flushed, EscapeInto::Loss, loss.impl, context, PendingReason::Flushed);
        return;
    }
    Kinds kinds = before;
    if (kinds.finite()) {
        kinds = births_.external(loss, event, context, health);
        kinds.since = context.step;
        ledger_.set(loss, kinds);
    }
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr) continue;
        if (!birth->intended) births_.set_bad_loss(birth->id);
        births_.find(birth->id)->features.after_parameters = is_term(lineage_, loss.storage, birth->forward_seq);
        Kinds one;
        one.of(kind) = birth->id;
        // What overflowed only because a scaler scaled it is the scaler's to catch.
        if (stacks_.is_scaler(birth->stack)) {
            postpone(one, EscapeInto::Loss, loss.impl, context, PendingReason::Gradient);
        } else {
            escape(one, EscapeInto::Loss, loss.impl, context, Severity::Error, outcome);
        }
    }
}

void Verdict::postpone(BirthId id, EscapeInto into, const void* impl, const OpContext& context, PendingReason reason) {
    pending_.postpone(births_.find(id), into, impl, context, reason);
}

void Verdict::postpone(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                       PendingReason reason) {
    for (const Kind kind : kNonFiniteKinds) {
        if (kinds.of(kind) != 0) postpone(kinds.of(kind), into, impl, context, reason);
    }
}

void Verdict::escape(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                     Outcome& outcome) {
    if (context.ignored) return;
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr || birth->ignored) continue;
        if (birth->intended && into != EscapeInto::Loss) continue;
        report_gradient_of(*birth, severity, outcome);
        report({.birth = birth->id,
                .into = into,
                .impl = impl,
                .step = context.step,
                .seq = context.seq,
                .stack = context.stack},
               severity, outcome);
    }
}

void Verdict::report(const PendingEscape escape, Severity severity, Outcome& outcome) {
    Birth& birth = *births_.find(escape.birth);
    const bool named = escape.into == EscapeInto::Parameter || escape.into == EscapeInto::Gradient ||
                       escape.into == EscapeInto::Buffer || escape.into == EscapeInto::OptimizerState;
    if (escape.into == EscapeInto::Parameter && !birth.intended) births_.set_poisoned(birth.id);
    if (named) contaminate(birth, escape.into, escape.impl, escape.step, outcome);
    if (birth.escaped) return;
    birth.escaped = true;
    if (birth.mechanism == Mechanism::HYPER) births_.set_diverged(birth.id);
    if (!birth.intended) ++escaped_births_;
    birth.features.into = escape.into;
    birth.features.scaler = scaler_seen_;
    birth.features.loss_known = loss_seq_ > birth.forward_seq;
    const bool came_back = escape.into == EscapeInto::Gradient || escape.into == EscapeInto::Parameter;
    if (birth.kind != 0 && birth.phase == Phase::Forward && birth.features.loss_known && came_back &&
        births_.bad_loss() == 0) {
        birth.features.hidden = true;
    }
    if (birth.features.loss_known && birth.forward_seq > loss_parameter_read_) birth.features.after_parameters = true;
    std::string place = place_of(birth);
    const bool again = !reported_places_.insert(place).second;
    if (!again) birth.history = magnitude_history(birth, lineage_, history_);
    EscapedBirth made;
    made.birth = birth;
    made.severity = severity;
    made.into = escape.into;
    made.impl = escape.impl;
    made.step = escape.step;
    made.seq = escape.seq;
    made.stack = escape.stack;
    made.again = again;
    made.place = std::move(place);
    if (!made.again && birth.kind != 0) steps_to_look_ = kStepsToLook;
    outcome.escaped.push_back(std::move(made));
}

void Verdict::contaminate(const Birth& birth, EscapeInto into, const void* impl, int64_t step, Outcome& outcome) {
    if (birth.kind == 0 || contaminated_.size() >= PendingStore::kMost) return;
    if (!contaminated_.emplace(birth.id, into, impl).second) return;
    outcome.contaminated.push_back({birth.id, into, impl, step});
}

bool Verdict::may_have_contaminated() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !reported_places_.empty() && !ledger_.entries().empty();
}

bool Verdict::optimizer_end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (steps_to_look_ == 0) return false;
    --steps_to_look_;
    return true;
}

void Verdict::find_contaminated(const std::vector<KeptTensor>& kept, Outcome& outcome) {
    std::map<const void*, int> tensors;
    for (const KeptTensor& tensor : kept) ++tensors[tensor.storage];
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const KeptTensor& tensor : kept) {
        const auto held = ledger_.entries().find(tensor.storage);
        if (held == ledger_.entries().end() || tensors[tensor.storage] > 1) continue;
        for (const Kind kind : kNonFiniteKinds) {
            const Birth* birth = births_.find(held->second.of(kind));
            if (birth == nullptr || !birth->escaped || birth->intended || !held->second.is_sure_of(kind)) continue;
            contaminate(*birth, tensor.kind, tensor.impl, held->second.since, outcome);
        }
    }
}

void Verdict::decide(const PendingStore::List& escapes, Severity severity, Outcome& outcome) {
    for (const PendingEscape& p : escapes) {
        const Birth* birth = births_.find(p.birth);
        if (birth != nullptr && !birth->scaler) report(p, severity, outcome);
    }
}

void Verdict::optimizer_begin(Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stepped_ = true;
    checked_losses_.clear();
    for (const PendingPolicy& policy : kPendingPolicies) {
        if (policy.at_step == PendingFate::Report) decide(pending_.take(policy.reason), policy.severity, outcome);
        if (policy.at_step == PendingFate::Drop) pending_.of(policy.reason).clear();
    }
}

std::vector<StateWrite> Verdict::take_state_writes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<StateWrite> taken;
    taken.swap(state_writes_);
    std::erase_if(taken, [&](const StateWrite& write) {
        const Birth* birth = births_.find(write.birth);
        const auto held = ledger_.entries().find(write.storage);
        const bool gone = held == ledger_.entries().end() || birth == nullptr ||
                          held->second.of(Kind(birth->kind)) != birth->id ||
                          !held->second.is_sure_of(Kind(birth->kind));
        return gone || birth->scaler || birth->escaped;
    });
    return taken;
}

void Verdict::confirm(const StateWrite& write, EscapeInto into, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Birth* birth = births_.find(write.birth);
    if (birth == nullptr) return;
    report_gradient_of(*birth, Severity::Error, outcome);
    report({.birth = write.birth,
            .into = into,
            .impl = write.impl,
            .step = write.step,
            .seq = write.seq,
            .stack = write.stack},
           Severity::Error, outcome);
}

void Verdict::finish(bool failed, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const PendingPolicy& policy : kPendingPolicies) {
        if (policy.at_end == PendingFate::Report) decide(pending_.take(policy.reason), policy.severity, outcome);
        if (policy.at_end == PendingFate::Ask) decide_at_end(policy, failed, outcome);
    }
}

void Verdict::decide_at_end(const PendingPolicy& policy, bool failed, Outcome& outcome) {
    switch (policy.reason) {
        case PendingReason::Gradient: return decide_gradients(outcome);
        case PendingReason::Scaler: return end_scalers(outcome);
        case PendingReason::Checked: return end_checks(failed, outcome);
        case PendingReason::NearLimitUnstepped:
            if (last_step_ == 0) decide(pending_.take(policy.reason), policy.severity, outcome);
            return;
        default: return;  // the table says it
    }
}

void Verdict::forget_pending() {
    pending_.clear();
    state_writes_.clear();
    births_.begin_child();
}

Verdict::Counts Verdict::counts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {births_.made(), escaped_births_, std::max<int64_t>(births_.made() - escaped_births_, 0)};
}

}  // namespace numsan
