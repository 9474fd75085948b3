#include "host/verdict/births.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "host/base/thresholds.h"
#include "host/cause/measure.h"
#include "host/cause/mechanism.h"
#include "host/ops/effect.h"
#include "host/track/bad_number.h"
#include "host/track/integers.h"
#include "host/track/list_member.h"

namespace numsan {
namespace {

constexpr size_t kMaxFacts = 8;  ///< tensors described per side; an optimizer's list can have hundreds

/// The facts of operands, with integers in their places, since those decide which one is the divisor.
std::vector<TensorFact> with_integers(const OpEvent& event, const std::vector<TensorFact>& facts) {
    if (traits_of(event).blamed < 0) return facts;
    std::vector<TensorFact> operands;
    auto next = facts.begin();
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (scannable(input)) {
            if (next == facts.end()) break;
            operands.push_back(*next++);
        } else if (const std::optional<Health> health = integer_health(input); health && (input.flags & kNumber) == 0) {
            operands.push_back(fact_of(input, "input", i, *health, true));
        }
    }
    return operands;
}

bool same(const Health& a, const Health& b) {
    return a.elements == b.elements && a.nan == b.nan && a.pos_inf == b.pos_inf && a.neg_inf == b.neg_inf &&
           a.first_bad == b.first_bad && a.min == b.min && a.max == b.max;
}

bool same(const std::vector<TensorFact>& a, const std::vector<TensorFact>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const TensorFact& one, const TensorFact& other) {
        return one.shape == other.shape && same(one.health, other.health);
    });
}

}  // namespace

bool written_by(const OpEvent& event, const TensorView& input) {
    // A rank's own part of the buffer that a collective fills is handed on as it is.
    const bool whole = event.op->op_class != OpClass::Collective;
    return std::any_of(event.outputs, event.outputs + event.output_count, [&](const TensorView& output) {
        return (output.flags & kWritten) != 0 && output.storage == input.storage &&
               (whole || output.impl == input.impl);
    });
}

bool sends(const OpEvent& event, const TensorView& input) {
    if (!written_by(event, input)) return true;
    // One rank sends and all others receive. Which this one is, the event does not say: what it is about to receive may
    // be unwritten memory.
    const std::string_view op = plain_op_name(event.op->name);
    if (op == "broadcast" || op == "scatter") return false;
    const auto in_place = [&](const TensorView& other) { return written_by(event, other); };
    return std::all_of(event.inputs, event.inputs + event.input_count, in_place) &&
           std::strstr(event.op->name, "::recv") == nullptr;
}

Birth* Births::find(BirthId id) {
    const auto it = births_.find(id);
    return it != births_.end() ? &it->second : nullptr;
}

const Birth* Births::find(BirthId id) const {
    const auto it = births_.find(id);
    return it != births_.end() ? &it->second : nullptr;
}

Births::Kinds Births::made_by(int64_t seq) const {
    Kinds made;
    for (auto it = births_.rbegin(); it != births_.rend() && (it->second.seq >= seq || it->second.waits); ++it) {
        if (it->second.seq == seq && it->second.kind != 0) made.of(static_cast<Kind>(it->second.kind)) = it->first;
    }
    return made;
}

bool Births::intended(BirthId id) const {
    const Birth* birth = find(id);
    return birth != nullptr && birth->intended;
}

void Births::add_kinds(Kinds& into, const Kinds& from) const {
    for (const Kind kind : kNonFiniteKinds) {
        BirthId& have = into.of(kind);
        const BirthId more = from.of(kind);
        if (more == 0) continue;
        const bool sure = into.is_sure_of(kind), more_sure = from.is_sure_of(kind);
        const bool earlier = more <= have && (more_sure || !sure);
        const bool alike = intended(have) == intended(more);
        if (have != 0 && !(intended(have) && !intended(more)) && !(alike && ((more_sure && !sure) || earlier)))
            continue;
        have = more;
        into.unsure = static_cast<KindSet>(more_sure ? into.unsure & ~kind : into.unsure | kind);
    }
    if (into.muted == 0) into.muted = from.muted;
    if (into.flushed == 0) into.flushed = from.flushed;
}

bool Births::unintended_inf(const Kinds& kinds, BirthId& first) const {
    first = 0;
    for (const Kind kind : {kPosInf, kNegInf}) {
        const BirthId id = kinds.of(kind);
        if (id != 0 && !intended(id) && (first == 0 || id < first)) first = id;
    }
    return first != 0;
}

Birth& Births::make(KindSet kind, const OpEvent& event, const OpContext& context) {
    while (births_.size() >= 2 * kMaxBirths) births_.erase(births_.begin());
    Birth& birth = births_[++last_];
    birth.id = last_;
    birth.kind = kind;
    birth.op = event.op->name;
    birth.phase = phase_of(event, context);
    birth.seq = context.seq;
    birth.forward_seq = context.seq;
    birth.step = context.step;
    birth.stack = context.stack;
    if (context.node != nullptr) birth.node = context.node;
    return birth;
}

void Births::describe(Birth& birth, const OpEvent& event) {
    for (int32_t i = 0; i < event.output_count && birth.outputs.size() < kMaxFacts; ++i) {
        const TensorView& output = event.outputs[i];
        if (!scannable(output)) continue;
        birth.outputs.push_back(fact_of(output, "output", i, scanner_.health(output), scanner_.measures(output)));
    }
    for (int32_t i = 0; i < event.input_count && birth.inputs.size() < kMaxFacts; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        const bool gone = written_by(event, input) || !scanner_.measures(input);
        birth.inputs.push_back(fact_of(input, "input", i, gone ? Health{} : scanner_.health(input), !gone));
    }
}

void Births::measure_into(Birth& birth, const OpEvent& event, const OpContext& context, const ForwardRecord& forward) {
    birth.features = measure(event, context, birth.inputs, birth.kind, lineage_);
    birth.features.phase = birth.phase;
    birth.features.mechanism = birth.mechanism;
    for (int32_t i = 0; i < event.output_count && birth.kind != 0; ++i) {
        const TensorView& output = event.outputs[i];
        if (!holds(output, Kind(birth.kind))) continue;
        birth.in_place = (output.flags & kWritten) != 0 ? output.storage : nullptr;
        break;
    }
    birth.features.diverging = losses_.diverging();
    birth.features.parameter_growth = parameters_.growth();
    birth.features.parameter_start = parameters_.largest_start();
    if (context.node == nullptr || forward.op == nullptr) return;
    birth.has_forward = true;
    birth.forward_op = forward.op->name;
    birth.forward_stack = forward.stack;
    birth.forward_seq = forward.seq;
    birth.features.forward_op = plain_op_name(birth.forward_op);
}

BirthId Births::origin(Kind kind, const OpEvent& event, const OpContext& context, const Kinds& before, const Kinds& old,
                       const ForwardRecord& forward) {
    if (const BirthId id = handed_over(kind, event, context); id != 0) return id;
    if (before.of(kind) != 0) {
        const Birth* read = find(before.of(kind));
        const bool arrived = read != nullptr && read->mechanism == Mechanism::DATA && read->step == context.step;
        if (!arrived || !stacks_.is_loading(context.stack)) {
            return before.of(kind);
        }
        Birth& birth = make(kind, event, context);
        birth.mechanism = Mechanism::STATE;
        birth.phase = Phase::Load;
        birth.ignored = context.ignored;
        birth.evidence.push_back("it came with the state that was loaded here");
        describe(birth, event);
        measure_into(birth, event, context, {});
        ++made_;
        return birth.id;
    }
    if (old.of(kind) != 0) return old.of(kind);
    const bool source = event.op->op_class == OpClass::Constant;
    const bool reads = context.unavailable > 0 ||
                       std::any_of(event.inputs, event.inputs + event.input_count, [&](const TensorView& t) {
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
    if (context.node != nullptr && forward.birth != 0) {
        if (Birth* hidden = find(forward.birth); hidden != nullptr && !hidden->intended) {
            hidden->features.hidden = true;
            return forward.birth;
        }
    }

    // The loss was bad before this backward began: what overflows on the way is what the loss made of it.
    if (context.node != nullptr && bad_loss_ != 0 && find(bad_loss_) != nullptr) return bad_loss_;

    int32_t bad = 0;
    while (bad + 1 < event.output_count && is_over_lists(event) && !holds(event.outputs[bad], kind)) ++bad;
    const ListMember member(event, bad);
    const OpEvent& at = member.event();
    Birth& birth = make(kind, event, context);
    birth.ignored = context.ignored;
    describe(birth, at);
    if (const BirthId first = recomputed(birth, event, context); first != 0) return first;
    ++made_;
    if (context.unavailable > 0) {
        birth.evidence.push_back(std::to_string(context.unavailable) +
                                 (context.unavailable == 1 ? " operand was" : " operands were") +
                                 " gone when the tier looked back at this op: an op before it may have made the value");
    }
    std::optional<double> number;
    if (inf != 0) {
        birth.mechanism = Mechanism::INDET;
        birth.evidence.push_back("an operand held infinities that the program wrote there on purpose");
    } else if (adopts_storage(event)) {
        birth.reader = birth.op;
        birth.op = "external";
        birth.mechanism = Mechanism::DATA;
        birth.waits = birth.unread = true;
        birth.inputs.clear();
        if (context.node == nullptr && !context.in_optimizer) birth.phase = Phase::Data;
        birth.evidence.push_back("no op was seen to make this value: it arrived with the tensor");
    } else if (!reads && event.op->op_class != OpClass::Other) {
        birth.mechanism = Mechanism::DATA;
        if (context.node == nullptr && !context.in_optimizer) birth.phase = Phase::Data;
        birth.evidence.push_back("the value was written as it is, not computed");
    } else if (number = bad_number(event, birth.phase == Phase::Optimizer); number) {
        birth.mechanism = Mechanism::DATA;
        birth.evidence.push_back(said_of_number(birth.op, *number));
    } else {
        const std::vector<TensorFact> operands = with_integers(at, birth.inputs);
        const bool diverging = losses_.diverging() || parameters_.growth() >= kDivergedGrowth;
        MechanismVerdict verdict =
            mechanism_of({birth.op, kind, context.node != nullptr, diverging,
                          at.output_count > 0 ? at.outputs[0].dtype : DType::Float32, &operands, context.unavailable});
        birth.mechanism = verdict.mechanism;
        for (std::string& fact : verdict.evidence) birth.evidence.push_back(std::move(fact));
        // A run that has diverged overflows in every step that follows, in one op or another: that is one finding.
        const bool overflows = birth.mechanism == Mechanism::OVF || birth.mechanism == Mechanism::HYPER;
        if (overflows && diverged_ != 0 && find(diverged_) != nullptr) {
            births_.erase(birth.id);
            --made_;
            return diverged_;
        }
    }
    measure_into(birth, at, context, forward);
    birth.features.bad_number = number.has_value();
    if (!birth.features.wrapped.empty()) birth.evidence.push_back(birth.features.wrapped);
    const bool by_zero = birth.mechanism == Mechanism::DIV0 || (birth.mechanism == Mechanism::DOM && kind != kNaN);
    if (by_zero && !birth.features.flushed.empty()) {
        birth.features.mechanism = birth.mechanism = Mechanism::UDF;
        birth.evidence.push_back(birth.features.flushed);
    }
    return birth.id;
}

bool Births::holds(const TensorView& tensor, Kind kind) const {
    return scannable(tensor) && (scanner_.kinds(tensor) & kind) != 0;
}

/// An op that runs inside a backward pass, with gradients on, as it ran in this step's forward pass, value for value: a
/// checkpointed region is computed anew. The birth there, which the forward pass had hidden, or 0; `birth` is dropped
/// then.
BirthId Births::recomputed(const Birth& birth, const OpEvent& event, const OpContext& context) {
    if (context.node == nullptr || !event.grad_enabled) return 0;
    for (auto it = births_.rbegin(); it != births_.rend() && it->second.step == birth.step; ++it) {
        Birth& first = it->second;
        const bool same_op = first.phase == Phase::Forward && first.kind == birth.kind && first.op == birth.op;
        if (!same_op || first.intended || !same(first.outputs, birth.outputs) || !same(first.inputs, birth.inputs))
            continue;
        first.features.hidden = true;
        births_.erase(birth.id);
        return first.id;
    }
    return 0;
}

KindSet Births::certain(const OpEvent& event) const {
    std::vector<Operand> operands;
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (!scannable(event.inputs[i]) || !scanner_.measures(event.inputs[i])) return 0;
        operands.push_back({scanner_.health(event.inputs[i]), true, {}});
        if (operands.back().health.kinds() != 0) return 0;  // it hands on what it read
    }
    if (event.output_count == 0 || (event.outputs[0].flags & (kScannable | kUnavailable)) == 0) return 0;
    const DType dtype = event.outputs[0].dtype;
    return effect({traits_of(event), operands, {event.scalars, static_cast<size_t>(event.scalar_count)}, dtype}).must;
}

void Births::becomes_initial_value(BirthId id) {
    Birth* birth = find(id);
    if (birth == nullptr || birth->escaped || birth->phase != Phase::Data) return;
    birth->phase = Phase::Load;
    birth->features.phase = Phase::Load;
    birth->features.reads_parameter = true;
}

BirthId Births::flushed(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                        Mechanism mechanism, std::string evidence) {
    const ListMember member(event, index);
    Birth& birth = make(0, event, context);
    birth.ignored = context.ignored;
    ++made_;
    birth.mechanism = mechanism;
    birth.evidence.push_back(std::move(evidence));
    describe(birth, member.event());
    measure_into(birth, member.event(), context, forward);
    if ((event.outputs[index].flags & kWritten) != 0) birth.in_place = event.outputs[index].storage;
    return birth.id;
}

BirthId Births::near_overflow(const OpEvent& event, int32_t index, const OpContext& context,
                              const ForwardRecord& forward, Mechanism mechanism, std::string evidence) {
    const BirthId id = flushed(event, index, context, forward, mechanism, std::move(evidence));
    Birth& birth = *find(id);
    birth.near_overflow = birth.features.near_overflow = true;
    return id;
}

void Births::sweep(std::set<BirthId> used) {
    for (const auto& [storage, entry] : ledger_.entries()) {
        used.insert(entry.birth, entry.birth + 3);
        used.insert({entry.muted, entry.flushed});
    }
    std::erase_if(births_, [&](const auto& item) { return used.count(item.first) == 0; });
    while (full()) births_.erase(births_.begin());
}

}  // namespace numsan
