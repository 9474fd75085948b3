#include "host/birth/births.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "host/base/value_classes.h"
#include "host/cause/measure.h"
#include "host/cause/mechanism.h"
#include "host/cause/remarks.h"
#include "host/ops/effect.h"
#include "host/track/bad_number.h"
#include "host/track/integers.h"
#include "host/track/list_member.h"

namespace numsan {
namespace {

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

/// A root of something infinite: what overflowed need not be large in the end.
bool takes_root(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return op.is({Form::Root, Form::Norm}) ||
           (op.form == Form::Power && event.scalar_count > 0 && event.scalars[0] > 0 && event.scalars[0] < 1);
}

bool is_layer(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return op.has(kLayer) || is_matrix_product(op) || op.form == Form::Convolve;
}

bool reads_parameter(const OpEvent& event) {
    return std::any_of(event.inputs, event.inputs + event.input_count,
                       [](const TensorView& t) { return is_parameter(t); });
}

/// What met a value computed from parameters goes on into a layer: the model joined features, or a state and an input.
void enter_layer(Birth& birth, const OpEvent& event) {
    if (birth.escaped || birth.phase != Phase::Forward || !is_layer(event) || !reads_parameter(event)) return;
    birth.met = FirstMet::Parameter;
    birth.phase = Phase::Data;
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

void Births::used(BirthId id, const OpEvent& event, const OpContext& context) {
    Birth* birth = store_.find(id);
    if (birth == nullptr) return;
    // A batch goes through the model first: what the optimizer is the first to read is state of its own.
    if (birth->unread && updates(event, context) && birth->phase == Phase::Data) {
        birth->features.mechanism = birth->mechanism = Mechanism::STATE;
        birth->phase = birth->features.phase = Phase::Load;
        birth->evidence.push_back("nothing read it before the optimizer did: it is state that was loaded");
    }
    birth->unread = false;
    if (birth->phase == Phase::Data && birth->mechanism != Mechanism::DATA && birth->met == FirstMet::Unknown)
        meet(*birth, event, context);
    else if (birth->met == FirstMet::Prediction && context.node == nullptr)
        enter_layer(*birth, event);
    if (!birth->waits) return;
    birth->waits = false;
    if (!birth->reader.empty()) birth->reader = event.op->name;
    birth->seq = birth->forward_seq = context.seq;
    birth->step = birth->features.step = context.step;
}

/// An op that reads a value which no parameter had touched. What first meets a prediction or a parameter's update
/// belongs to the loss or is a setting: no data.
void Births::meet(Birth& birth, const OpEvent& event, const OpContext& context) const {
    // A layer's weight may be computed, too.
    // NOLINTNEXTLINE(bugprone-branch-clone): an update stands between the two that meet a parameter
    if (is_layer(event) && (reads_parameter(event) || (context.in_module && context.touched))) {
        birth.met = FirstMet::Parameter;
    } else if (phase_.of(event, context) == Phase::Optimizer) {
        // What is copied over a parameter before anything was learned is its first value.
        if (!context.learning && context.step == 0 && event.op->op_class == OpClass::Overwriting) {
            birth.phase = Phase::Load;
            return;
        }
        birth.met = FirstMet::Update;
        birth.phase = Phase::Optimizer;
    } else if (reads_parameter(event)) {
        birth.met = FirstMet::Parameter;
    } else if (context.touched) {
        birth.met = FirstMet::Prediction;
        birth.phase = Phase::Forward;
    }
}

/// It arrived with data that is loaded into state: a birth of its own, of that state.
BirthId Births::loaded(Kind kind, const OpEvent& event, const OpContext& context) {
    Birth& birth = make(kind, event, context);
    birth.mechanism = Mechanism::STATE;
    birth.phase = Phase::Load;
    birth.ignored = context.ignored;
    birth.evidence.push_back("it came with the state that was loaded here");
    facts_.describe(birth, event);
    facts_.measure(birth, event, context, {});
    return birth.id;
}

/// The birth that what the op read goes back to: `of_kind` of this kind, `inf` of an infinity. 0: there is none, but
/// for what the program wrote on purpose.
BirthId Births::read_from(Kind kind, const OpContext& context, const BirthKinds& before, BirthId inf,
                          const ForwardRecord& forward) {
    if (inf != 0) {
        if (const BirthId cause = store_.unintended_inf(before); cause != 0) return cause;
        if (kind != kNaN) return inf;  // an intended infinity that was negated or scaled
    } else if (before.of(kNaN) != 0) {
        return before.of(kNaN);
    }
    if (context.node == nullptr) return 0;
    // The forward op of this node made a bad value that was hidden (where, masked_fill): it comes back here.
    if (Birth* hidden = store_.find(forward.birth); hidden != nullptr && !hidden->intended) {
        hidden->features.hidden = true;
        return forward.birth;
    }
    // The loss was bad before this backward began: what overflows on the way is what the loss made of it.
    return store_.find(store_.bad_loss) != nullptr ? store_.bad_loss : 0;
}

/// Says how the op made it, of operands that were finite or infinite on purpose. False: a run that has diverged
/// overflows in every step that follows, in one op or another, and that is one finding, which there is by now.
bool Births::explain(Birth& birth, const OpEvent& event, const OpEvent& at, const OpContext& context, BirthId inf,
                     bool reads, bool adopts) {
    const bool in_program = context.node == nullptr && !context.in_optimizer;
    if (inf != 0) {
        birth.mechanism = Mechanism::INDET;
        birth.evidence.push_back(is_of_plain_program(birth.op)
                                     ? "an operand held infinities, which were taken to be meant"
                                     : "an operand held infinities that the program wrote there on purpose");
    } else if (adopts) {
        birth.reader = birth.op;
        birth.op = "external";
        birth.mechanism = Mechanism::DATA;
        birth.waits = birth.unread = true;
        birth.inputs.clear();
        birth.launches.clear();
        if (in_program) birth.phase = Phase::Data;
        birth.evidence.push_back("no op was seen to make this value: it arrived with the tensor");
    } else if (!reads && event.op->op_class != OpClass::Other) {
        birth.mechanism = Mechanism::DATA;
        birth.literal = true;
        if (in_program) birth.phase = Phase::Data;
        birth.evidence.push_back("the value was written as it is, not computed");
    } else if (const auto number = bad_number(event, birth.phase == Phase::Optimizer); number) {
        birth.mechanism = Mechanism::DATA;
        birth.literal = event.op->op_class != OpClass::Other;  // new_full: it fills, and reads no value
        birth.evidence.push_back(said_of_number(birth.op, *number));
        birth.features.bad_number = true;
    } else {
        const std::vector<TensorFact> operands = with_integers(at, birth.inputs);
        const DType dtype = at.output_count > 0 ? at.outputs[0].dtype : DType::Float32;
        MechanismVerdict verdict =
            mechanism_of({birth.op, Kind(birth.kind), context.node != nullptr, dtype, &operands, context.unavailable,
                          birth.features.loss_growth, birth.features.parameter_growth});
        birth.mechanism = verdict.mechanism;
        for (std::string& fact : verdict.evidence) birth.evidence.push_back(std::move(fact));
        const bool overflows = birth.mechanism == Mechanism::OVF || birth.mechanism == Mechanism::HYPER;
        return !overflows || store_.find(store_.diverged) == nullptr;
    }
    return true;
}

/// Of an infinity that a kernel wrote which the program launched itself: many begin a minimum with one, or mask by it.
/// One that was computed has an operand that is large, or at least as many zeros to divide by. Of an operand that is
/// overwritten by now, what is finite in the result speaks: it grew with the rest.
/// Of a sum over ranks the operand is this one's share: as much again, and it overflows.
static bool operands_explain(const Birth& birth) {
    const auto infinities_of = [](const TensorFact& output) { return output.health.pos_inf + output.health.neg_inf; };
    const auto output = std::find_if(birth.outputs.begin(), birth.outputs.end(),
                                     [&](const TensorFact& fact) { return infinities_of(fact) > 0; });
    if (output == birth.outputs.end()) return false;
    const bool sum = is_over_ranks(birth.op);
    const double large = sum ? largest_value(output->dtype) / 2 : std::sqrt(largest_value(output->dtype));
    const int64_t infinities = infinities_of(*output);
    return std::any_of(birth.inputs.begin(), birth.inputs.end(), [&](const TensorFact& operand) {
        const Health& health = operand.exact ? operand.health : output->health;
        // Masks have the largest number of their type.
        if (sum && health.absmax >= largest_value(output->dtype)) return false;
        return health.absmax > large || (!sum && operand.exact && health.zero > 0 && infinities <= health.zero);
    });
}

Births::Origin Births::origin(Kind kind, const OpEvent& event, const OpContext& context, const BirthKinds& before,
                              const BirthKinds& old, const ForwardRecord& forward) {
    const BirthId id = find_origin(kind, event, context, before, old, forward);
    Birth* birth = store_.find(id);
    if (birth != nullptr && takes_root(event)) birth->through_root = true;
    return {id, birth != nullptr && birth->intended};
}

BirthId Births::find_origin(Kind kind, const OpEvent& event, const OpContext& context, const BirthKinds& before,
                            const BirthKinds& old, const ForwardRecord& forward) {
    const bool adopts = adopts_storage(event);
    if (adopts) {
        if (const BirthId id = exchanged_.received(kind, event, context); id != 0) return id;
    }
    if (before.of(kind) != 0) {
        const Birth* read = store_.find(before.of(kind));
        const bool arrived = read != nullptr && read->mechanism == Mechanism::DATA && read->step == context.step;
        return arrived && stacks_.is_loading(context.stack) ? loaded(kind, event, context) : before.of(kind);
    }
    if (old.of(kind) != 0) return old.of(kind);
    const bool source = event.op->op_class == OpClass::Constant;
    const bool reads = context.unavailable > 0 ||
                       std::any_of(event.inputs, event.inputs + event.input_count, [&](const TensorView& t) {
                           return scannable(t) && (event.op->op_class == OpClass::Other || !written_by(event, t));
                       });
    const bool meant = source ? event.infinite_scalar || !reads || event.input_count == 1
                              : event.infinite_scalar && is_kernel(event.op->name);
    if (kind != kNaN && meant) {
        Birth& birth = make(kind, event, context);
        store_.intend(birth);
        return birth.id;
    }
    const BirthId inf = before.of(kPosInf) != 0 ? before.of(kPosInf) : before.of(kNegInf);
    if (const BirthId id = read_from(kind, context, before, inf, forward); id != 0) return id;

    int32_t bad = 0;
    while (bad + 1 < event.output_count && is_over_lists(event) && !facts_.holds(event.outputs[bad], kind)) ++bad;
    const ListMember member(event, bad);
    const OpEvent& at = member.event();
    Birth& birth = make(kind, event, context);
    birth.ignored = context.ignored;
    facts_.describe(birth, at);
    if (kind != kNaN && is_kernel(birth.op) && !operands_explain(birth)) {
        store_.intend(birth);
        return birth.id;
    }
    if (is_over_ranks(birth.op) && (kind == kNaN || !operands_explain(birth))) {
        birth.ignored = true;  // another rank put it in, and is told of it
        return birth.id;
    }
    if (const BirthId first = recomputed(birth, event, context); first != 0) return first;
    if (context.unavailable > 0) {
        birth.evidence.push_back(std::to_string(context.unavailable) +
                                 (context.unavailable == 1 ? " operand was" : " operands were") +
                                 " gone when the tier looked back at this op: an op before it may have made the value");
    }
    if (!explain(birth, event, at, context, inf, reads, adopts)) {
        store_.drop(birth.id);
        return store_.diverged;
    }
    facts_.measure(birth, at, context, forward);
    remark_on(birth.inputs, birth.op, birth.mechanism, birth.kind, birth.features.dtype);
    facts_.count_exponents(birth, at);
    if (!birth.features.wrapped.empty()) birth.evidence.push_back(birth.features.wrapped);
    const bool by_zero = birth.mechanism == Mechanism::DIV0 || (birth.mechanism == Mechanism::DOM && kind != kNaN);
    if (by_zero && !birth.features.cut.empty()) birth.evidence.push_back(birth.features.cut);
    if (by_zero && !birth.features.flushed.empty()) {
        birth.features.mechanism = birth.mechanism = Mechanism::UDF;
        birth.evidence.push_back(birth.features.flushed);
    }
    return birth.id;
}

/// An op that runs inside a backward pass, with gradients on, as it ran in this step's forward pass, value for value: a
/// checkpointed region is computed anew. The birth there, which the forward pass had hidden, or 0; `birth` is dropped
/// then.
BirthId Births::recomputed(const Birth& birth, const OpEvent& event, const OpContext& context) {
    if (context.node == nullptr || !event.grad_enabled) return 0;
    for (auto it = store_.all().rbegin(); it != store_.all().rend() && it->second.step == birth.step; ++it) {
        Birth& first = it->second;
        const bool same_op = first.phase == Phase::Forward && first.kind == birth.kind && first.op == birth.op;
        if (!same_op || first.intended || !same(first.outputs, birth.outputs) || !same(first.inputs, birth.inputs))
            continue;
        first.features.hidden = true;
        store_.drop(birth.id);
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
    Birth* birth = store_.find(id);
    if (birth == nullptr || birth->escaped || birth->phase != Phase::Data) return;
    birth->phase = Phase::Load;
    birth->features.phase = Phase::Load;
    birth->features.reads_parameter = true;
}

Birth& Births::flushed(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                       Mechanism mechanism, std::string evidence) {
    const ListMember member(event, index);
    Birth& birth = make(0, event, context);
    birth.ignored = context.ignored;
    birth.mechanism = mechanism;
    birth.evidence.push_back(std::move(evidence));
    facts_.describe(birth, member.event());
    facts_.measure(birth, member.event(), context, forward);
    facts_.count_exponents(birth, member.event());
    if ((event.outputs[index].flags & kWritten) != 0) birth.in_place = event.outputs[index].storage;
    return birth;
}

Birth& Births::near_overflow(const OpEvent& event, int32_t index, const OpContext& context,
                             const ForwardRecord& forward, Mechanism mechanism, std::string evidence) {
    Birth& birth = flushed(event, index, context, forward, mechanism, std::move(evidence));
    birth.near_overflow = birth.features.near_overflow = true;
    return birth;
}

}  // namespace numsan
