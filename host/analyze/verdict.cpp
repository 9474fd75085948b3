#include "host/analyze/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/analyze/mechanism.h"

namespace numsan {
namespace {

constexpr Kind kKinds[] = {kNaN, kPosInf, kNegInf};
constexpr size_t kMaxBirths = 1 << 14;
constexpr size_t kMaxPending = 1 << 12;
constexpr size_t kMaxFacts = 8;  ///< tensors described per side; an optimizer's list can have hundreds

bool scannable(const TensorView& t) { return (t.flags & kScannable) != 0; }

bool covers_storage(const TensorView& t) {
    return t.numel * static_cast<int64_t>(info(t.dtype).element_bytes()) >= t.storage_bytes;
}

bool written_by(const OpEvent& event, const TensorView& input) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        if ((event.outputs[i].flags & kWritten) != 0 && event.outputs[i].storage == input.storage) return true;
    }
    return false;
}

TensorFact fact_of(const TensorView& t, const char* side, int32_t index, const Health& health, bool exact) {
    TensorFact fact;
    fact.name = std::string(side) + "[" + std::to_string(index) + "]";
    fact.dtype = t.dtype;
    fact.shape.assign(t.sizes, t.sizes + t.ndim);
    fact.health = health;
    fact.exact = exact;
    return fact;
}

}  // namespace

Verdict::Verdict(const Scanner& scanner, std::function<bool(StackId)> is_loss, std::function<bool(StackId)> is_scaler)
    : scanner_(scanner), is_loss_(std::move(is_loss)), is_scaler_(std::move(is_scaler)) {}

bool Verdict::interesting(const OpEvent& event, uint64_t bad_outputs) const noexcept {
    if (bad_outputs != 0 || event.op->op_class == OpClass::Allocation) return true;
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (ledger_.may_hold(event.inputs[i].storage)) return true;
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        if (ledger_.may_hold(event.outputs[i].storage)) return true;
    }
    // One value: what backward() starts from, or a number the program reads.
    return std::strcmp(event.op->name, "aten::ones_like") == 0 || event.op->op_class == OpClass::HostRead;
}

void Verdict::add_kinds(Kinds& into, const Kinds& from) {
    for (const Kind kind : kKinds) {
        BirthId& have = into.of(kind);
        const BirthId more = from.of(kind);
        if (more == 0) continue;
        // An unintended origin outranks an intended one; among equals the earlier wins.
        if (have == 0 || (intended(have) && !intended(more)) || (intended(have) == intended(more) && more < have)) {
            have = more;
        }
    }
}

bool Verdict::intended(BirthId id) const {
    const auto it = births_.find(id);
    return it != births_.end() && it->second.intended;
}

bool Verdict::unintended_inf(const Kinds& kinds, BirthId& first) const {
    first = 0;
    for (const Kind kind : {kPosInf, kNegInf}) {
        const BirthId id = kinds.of(kind);
        if (id != 0 && !intended(id) && (first == 0 || id < first)) first = id;
    }
    return first != 0;
}

Phase Verdict::phase_of(const OpEvent& event, const OpContext& context) const {
    if (context.node != nullptr) return Phase::Backward;
    if (context.in_optimizer) return Phase::Optimizer;
    if (context.in_data_loader) return Phase::Data;
    if (event.op->op_class == OpClass::Collective) return Phase::Comm;
    if (context.in_module) return Phase::Forward;
    bool touched = false;
    bool state = false;
    const auto look = [&](const TensorView& t) {
        touched = touched || (t.flags & kRequiresGrad) != 0;
        state = state || is_parameter(t) || gradient_storages_.count(t.storage) != 0;
    };
    for (int32_t i = 0; i < event.input_count; ++i) look(event.inputs[i]);
    for (int32_t i = 0; i < event.output_count; ++i) look(event.outputs[i]);
    if (!event.grad_enabled && state) return Phase::Optimizer;
    return touched || context.touched ? Phase::Forward : Phase::Data;
}

Birth& Verdict::make(Kind kind, const OpEvent& event, const OpContext& context) {
    if (births_.size() >= kMaxBirths) sweep();
    Birth& birth = births_[++last_birth_];
    birth.id = last_birth_;
    birth.kind = kind;
    birth.op = event.op->name;
    birth.phase = phase_of(event, context);
    birth.seq = context.seq;
    birth.step = context.step;
    birth.stack = context.stack;
    if (context.node != nullptr) birth.node = context.node;
    return birth;
}

void Verdict::describe(Birth& birth, const OpEvent& event) {
    for (int32_t i = 0; i < event.output_count && birth.outputs.size() < kMaxFacts; ++i) {
        if (!scannable(event.outputs[i])) continue;
        birth.outputs.push_back(fact_of(event.outputs[i], "output", i, scanner_.health(event.outputs[i]), true));
    }
    for (int32_t i = 0; i < event.input_count && birth.inputs.size() < kMaxFacts; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        const bool gone = written_by(event, input);
        birth.inputs.push_back(fact_of(input, "input", i, gone ? Health{} : scanner_.health(input), !gone));
    }
}

/// A bad value that no op was seen to make: it was there before, or it came from outside.
Verdict::Kinds Verdict::external(const TensorView& tensor, const OpEvent& event, const OpContext& context,
                                 const Health& health) {
    Kinds made;
    const Ledger::Unwritten* unwritten = ledger_.unwritten(tensor);
    for (const Kind kind : kKinds) {
        if ((health.kinds() & kind) == 0) continue;
        Birth& birth = make(kind, event, context);
        birth.inputs.push_back(fact_of(tensor, "input", tensor.argument, health, true));
        made.of(kind) = birth.id;
        // torch.tensor(float("inf")) and its like: the program wrote it down.
        if (kind != kNaN && event.op->op_class == OpClass::Constant && event.input_count == 1) {
            birth.intended = true;
            continue;
        }
        if (unwritten != nullptr) {
            birth.mechanism = "UNINIT";
            birth.op = "aten::empty";
            birth.stack = unwritten->stack;
            birth.seq = unwritten->seq;
            birth.node.clear();
            birth.phase = is_parameter(tensor) ? Phase::Load : Phase::Forward;
            birth.evidence.push_back("nothing wrote this memory between its allocation and the first read by " +
                                     std::string(event.op->name));
        } else if (is_parameter(tensor)) {
            birth.mechanism = "STATE";
            birth.phase = Phase::Load;
            birth.evidence.push_back("the parameter held this value before any op was seen to write it");
        } else {
            birth.mechanism = "DATA";
            birth.phase = context.node != nullptr ? birth.phase : Phase::Data;
            birth.evidence.push_back("no op was seen to make this value: it arrived with the tensor");
        }
        ++unintended_births_;
    }
    return made;
}

/// Which births the op read. With clean outputs only what the ledger knows matters; otherwise every operand is looked at.
Verdict::Kinds Verdict::read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad) {
    Kinds before;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        const bool gone = written_by(event, input);
        if (gone && event.op->op_class == OpClass::Overwriting) continue;
        const Kinds* known = ledger_.find(input);
        if (known == nullptr && (!outputs_bad || gone)) continue;
        if (gone) {
            add_kinds(before, *known);
            continue;
        }
        if (!scanner_.range(input).suspicious) continue;  // a clean slice of a bad storage
        if (known == nullptr) {
            const Kinds made = external(input, event, context, scanner_.health(input));
            ledger_.set(input, made);
            add_kinds(before, made);
            continue;
        }
        Kinds here;
        const KindSet kinds = scanner_.kinds(input);
        for (const Kind kind : kKinds) {
            if ((kinds & kind) != 0) here.of(kind) = known->of(kind);
        }
        add_kinds(before, here);
    }
    return before;
}

/// The birth that one kind of bad value in the output goes back to.
BirthId Verdict::origin(Kind kind, const OpEvent& event, const OpContext& context, const Kinds& before, const Kinds& old,
                        const ForwardRecord& forward) {
    if (before.of(kind) != 0) return before.of(kind);
    if (old.of(kind) != 0) return old.of(kind);
    const bool source = event.op->op_class == OpClass::Constant;
    const bool reads = std::any_of(event.inputs, event.inputs + event.input_count, [&](const TensorView& t) {
        return scannable(t) && !(written_by(event, t) && event.op->op_class != OpClass::Other);
    });
    if (kind != kNaN && source && (event.infinite_scalar || !reads || event.input_count == 1)) {
        Birth& birth = make(kind, event, context);
        birth.intended = true;
        return birth.id;
    }
    BirthId cause = 0;
    if (unintended_inf(before, cause)) return cause;
    const BirthId inf = before.of(kPosInf) != 0 ? before.of(kPosInf) : before.of(kNegInf);
    if (inf != 0 && kind != kNaN) return inf;  // an intended infinity that was negated or scaled
    if (inf == 0 && before.of(kNaN) != 0) return before.of(kNaN);
    // The forward op of this node made a bad value that was hidden (where, masked_fill): it comes back here.
    if (context.node != nullptr && forward.birth != 0 && births_.count(forward.birth) != 0 && !intended(forward.birth)) {
        return forward.birth;
    }

    Birth& birth = make(kind, event, context);
    birth.ignored = context.ignored;
    ++unintended_births_;
    describe(birth, event);
    if (inf != 0) {
        birth.mechanism = "INDET";
        birth.evidence.push_back("an operand held infinities that the program wrote there on purpose");
    } else if (!reads && event.op->op_class != OpClass::Other) {
        birth.mechanism = "DATA";
        if (context.node == nullptr && !context.in_optimizer) birth.phase = Phase::Data;
        birth.evidence.push_back("the value was written as it is, not computed");
    } else {
        std::vector<TensorFact> operands;
        for (const TensorFact& input : birth.inputs) operands.push_back(input);
        MechanismVerdict verdict = mechanism_of({birth.op, kind, context.node != nullptr, losses_.diverging(),
                                                 event.output_count > 0 ? event.outputs[0].dtype : DType::Float32,
                                                 &operands});
        birth.mechanism = verdict.mechanism;
        birth.evidence = std::move(verdict.evidence);
    }
    if (context.node != nullptr && forward.op != nullptr) {
        birth.has_forward = true;
        birth.forward_op = forward.op->name;
        birth.forward_stack = forward.stack;
    }
    return birth.id;
}

void Verdict::op(const OpEvent& event, const OpContext& context, uint64_t bad_outputs, const ForwardRecord& forward,
                 BirthId* born, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *born = 0;
    if (event.op->op_class == OpClass::Allocation) {
        for (int32_t i = 0; i < event.output_count; ++i) {
            if ((event.outputs[i].flags & kReturned) != 0 && scannable(event.outputs[i])) {
                ledger_.mark_unwritten(event.outputs[i], context.stack, context.seq);
            }
        }
        return;
    }
    const Kinds before = read_inputs(event, context, bad_outputs != 0);
    escapes_of(event, context, before, outcome);
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!scannable(output)) continue;
        ledger_.mark_written(output);
        const bool written = (output.flags & kWritten) != 0;
        const bool bad = (bad_outputs >> std::min(i, 63)) & 1;
        if (!bad) {
            if (!written || covers_storage(output)) ledger_.clear(output);
            continue;
        }
        const Kinds* entry = ledger_.find(output);
        const Kinds old = entry != nullptr ? *entry : Kinds{};
        // A storage that inner ops of this op filled is known already; a returned one is new, whatever its address was before.
        const bool keep = written || std::strncmp(event.op->name, "aten::", 6) != 0;
        Kinds now = written && !covers_storage(output) ? old : Kinds{};
        const KindSet kinds = scanner_.kinds(output);
        for (const Kind kind : kKinds) {
            if ((kinds & kind) == 0) continue;
            const BirthId id = origin(kind, event, context, before, keep ? old : Kinds{}, forward);
            now.of(kind) = id;
            if (!intended(id) && (*born == 0 || id < *born)) *born = id;
        }
        ledger_.set(output, now);
        if (!written) continue;
        if (is_parameter(output)) {
            escape(now, EscapeInto::Parameter, output.impl, context, Severity::Error, outcome);
        } else if (std::strstr(event.op->name, "batch_norm") != nullptr) {
            escape(now, EscapeInto::Buffer, output.impl, context, Severity::Error, outcome);
        }
    }
}

void Verdict::escapes_of(const OpEvent& event, const OpContext& context, const Kinds& before, Outcome& outcome) {
    const OpClass cls = event.op->op_class;
    if (cls == OpClass::Collective && !before.empty()) {
        escape(before, EscapeInto::Collective, nullptr, context, Severity::Error, outcome);
    } else if (cls == OpClass::HostRead) {
        Kinds read = before;
        if (read.empty() && event.input_count == 1 && scannable(event.inputs[0]) &&
            scanner_.range(event.inputs[0]).suspicious) {
            read = external(event.inputs[0], event, context, scanner_.health(event.inputs[0]));
            ledger_.set(event.inputs[0], read);
        }
        postpone(read, EscapeInto::Host, nullptr, context, reads_);
    } else if (cls == OpClass::LossScale) {
        for (int32_t i = 0; i < event.input_count; ++i) {
            const Kinds* known = ledger_.find(event.inputs[i]);
            for (const Kind kind : kKinds) {
                const auto it = births_.find(known != nullptr ? known->of(kind) : 0);
                if (it != births_.end()) it->second.scaler = true;
            }
        }
        std::erase_if(gradients_, [&](const Pending& p) {
            const auto it = births_.find(p.birth);
            return it == births_.end() || (it->second.scaler && !it->second.escaped);
        });
    } else if (event.input_count == 1 && std::strcmp(event.op->name, "aten::ones_like") == 0 && is_loss_(context.stack)) {
        const TensorView& loss = event.inputs[0];
        if (!scannable(loss)) return;
        const Health health = scanner_.health(loss);
        losses_.add(health.finite > 0 ? health.absmax : 0);
        if (health.kinds() == 0) return;
        Kinds kinds = before;
        if (kinds.empty()) {
            kinds = external(loss, event, context, health);
            ledger_.set(loss, kinds);
        }
        for (const Kind kind : kKinds) {
            const auto it = births_.find(kinds.of(kind));
            if (it == births_.end()) continue;
            Kinds one;
            one.of(kind) = it->first;
            // What overflowed only because a scaler scaled it is the scaler's to catch.
            if (is_scaler_(it->second.stack)) {
                postpone(one, EscapeInto::Loss, loss.impl, context, gradients_);
            } else {
                escape(one, EscapeInto::Loss, loss.impl, context, Severity::Error, outcome);
            }
        }
    }
}

void Verdict::node(const NodeEvent& event, const OpContext& context, Outcome& outcome) {
    if (event.variable == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (gradient_storages_.size() > (1u << 16)) gradient_storages_.clear();
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& gradient = event.inputs[i];
        gradient_storages_[gradient.storage] = true;
        if (!scannable(gradient) || !ledger_.may_hold(gradient.storage)) continue;
        const Kinds* known = ledger_.find(gradient);
        if (known == nullptr || !scanner_.range(gradient).suspicious) continue;
        Kinds here;
        const KindSet kinds = scanner_.kinds(gradient);
        for (const Kind kind : kKinds) {
            if ((kinds & kind) != 0) here.of(kind) = known->of(kind);
        }
        postpone(here, EscapeInto::Gradient, event.variable->impl, context, gradients_);
    }
}

void Verdict::postpone(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                       std::vector<Pending>& list) {
    if (context.ignored || list.size() >= kMaxPending) return;
    for (const Kind kind : kKinds) {
        const auto it = births_.find(kinds.of(kind));
        if (it == births_.end() || it->second.scaler || it->second.ignored) continue;
        if (it->second.intended && into != EscapeInto::Loss) continue;
        list.push_back({it->first, into, impl, context.step, context.seq, context.stack});
    }
}

void Verdict::escape(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                     Outcome& outcome) {
    if (context.ignored) return;
    for (const Kind kind : kKinds) {
        const auto it = births_.find(kinds.of(kind));
        if (it == births_.end() || it->second.ignored) continue;
        if (it->second.intended && into != EscapeInto::Loss) continue;
        // A gradient that was pending reached its parameter: the gradient was the first thing that mattered.
        const auto pending = std::find_if(gradients_.begin(), gradients_.end(),
                                          [&](const Pending& p) { return p.birth == it->first; });
        if (pending != gradients_.end() && !it->second.escaped) {
            const Pending first = *pending;
            report(first.birth, severity, first.into, first.impl, first.step, first.seq, first.stack, outcome);
        }
        report(it->first, severity, into, impl, context.step, context.seq, context.stack, outcome);
    }
}

void Verdict::report(BirthId id, Severity severity, EscapeInto into, const void* impl, int64_t step, int64_t seq,
                     StackId stack, Outcome& outcome) {
    Birth& birth = births_.at(id);
    const bool named = into == EscapeInto::Parameter || into == EscapeInto::Gradient || into == EscapeInto::Buffer;
    if (named && contaminated_.size() < kMaxPending && contaminated_.emplace(id, impl).second) {
        outcome.contaminated.push_back({id, into, impl, step});
    }
    if (birth.escaped) return;
    birth.escaped = true;
    ++escaped_births_;
    const std::string place = birth.op + "|" + std::to_string(birth.has_forward ? birth.forward_stack : birth.stack) + "|" +
                              birth.node + "|" + birth.mechanism;
    EscapedBirth made;
    made.birth = birth;
    made.severity = severity;
    made.into = into;
    made.impl = impl;
    made.step = step;
    made.seq = seq;
    made.stack = stack;
    made.again = !reported_places_.insert(place).second;
    outcome.escaped.push_back(std::move(made));
}

void Verdict::optimizer_begin(Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Pending& p : gradients_) {
        const auto it = births_.find(p.birth);
        if (it == births_.end() || it->second.scaler) continue;
        report(p.birth, Severity::Error, p.into, p.impl, p.step, p.seq, p.stack, outcome);
    }
    gradients_.clear();
}

void Verdict::zero_grad() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Pending& p : gradients_) {
        if (discarded_.size() < kMaxPending) discarded_.push_back(p);
    }
    gradients_.clear();
}

void Verdict::finish(Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto decide = [&](std::vector<Pending>& list, Severity severity) {
        for (const Pending& p : list) {
            const auto it = births_.find(p.birth);
            if (it == births_.end() || it->second.scaler || it->second.escaped) continue;
            report(p.birth, severity, p.into, p.impl, p.step, p.seq, p.stack, outcome);
        }
        list.clear();
    };
    decide(gradients_, Severity::Error);
    decide(discarded_, Severity::Warning);
    decide(reads_, Severity::Warning);
}

void Verdict::forget_pending() {
    gradients_.clear();
    discarded_.clear();
    reads_.clear();
}

Verdict::Counts Verdict::counts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {unintended_births_, escaped_births_, unintended_births_ - escaped_births_};
}

/// Drops births that nothing refers to any more, so that memory stays flat over a long run.
void Verdict::sweep() {
    std::set<BirthId> used;
    for (const auto& [storage, entry] : ledger_.entries()) used.insert(entry.birth, entry.birth + 3);
    for (const auto* list : {&gradients_, &discarded_, &reads_}) {
        for (const Pending& p : *list) used.insert(p.birth);
    }
    std::erase_if(births_, [&](const auto& item) { return used.count(item.first) == 0; });
    while (births_.size() >= kMaxBirths) births_.erase(births_.begin());
}

}  // namespace numsan
