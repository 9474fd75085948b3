#include "host/cause/measure.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/cause/rounded_operand.h"
#include "host/log/format.h"
#include "host/ops/effect.h"
#include "host/track/integers.h"
#include "host/track/wrapped_operand.h"

namespace numsan {
namespace {

/// A bound of the result's magnitude if numbers had no largest value; 0 when the operator says nothing about it.
double result_bound(const OpEvent& event, std::span<const TensorFact> facts, DType dtype) {
    std::vector<Operand> operands;
    for (const TensorFact& fact : facts) operands.push_back({fact.health, fact.exact, fact.shape});
    const int64_t results = event.output_count > 0 ? event.outputs[0].numel : 0;
    const std::span<const double> scalars{event.scalars, static_cast<size_t>(event.scalar_count)};
    return effect({traits_of(event), operands, scalars, dtype, results}).bound.value_or(0);
}

/// The magnitude of the largest target where one is far from what the loss is defined for, 0 where all are in order.
double wrong_target(const OpEvent& event, std::span<const TensorFact> facts) {
    if (traits_of(event).form != Form::BinaryCrossEntropy || facts.size() < 2 || !facts[1].exact) return 0;
    const Health& target = facts[1].health;
    const double below = -target.min, above = target.max - 1;
    if (std::max(below, above) <= kWrongTarget) return 0;
    return std::max(std::fabs(target.min), std::fabs(target.max));
}

/// How many times larger a parameter that is a matrix or a kernel makes values: with entries of one size, by that size
/// times the root of what is summed. The largest of many normal numbers is some four times their size.
double weight_gain(const OpEvent& event, const OpContext& context, std::span<const TensorFact> facts) {
    const OpTraits& op = traits_of(event);
    if (!is_matrix_product(op) && op.form != Form::Convolve) return 0;
    double gain = 0;
    size_t position = 0;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) == 0) continue;
        const TensorFact* fact = position < facts.size() ? &facts[position] : nullptr;
        ++position;
        if (!holds_parameter(context, input, i) || input.ndim < 2 || fact == nullptr || !fact->exact) continue;
        const bool second = i == event.input_count - 1;
        const int64_t terms = op.form == Form::Convolve ? input.numel / std::max<int64_t>(input.sizes[0], 1)
                                                        : input.sizes[second ? input.ndim - 2 : input.ndim - 1];
        gain = std::max(gain, fact->health.absmax / kLargestOfMany * std::sqrt(static_cast<double>(terms)));
    }
    return gain;
}

/// Every write behind the operand made what numbers of its call say, or read such results only.
bool is_constant(const TensorView& operand, OpSeq seq, const Lineage& lineage) {
    bool found = false, constant = true;
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int) {
        found = true;
        if (traits_of(record.op->name).has(kConstant)) return false;
        constexpr uint16_t kOther = Lineage::kTouched | Lineage::kReadsParameter | Lineage::kUnknownOperand;
        constant = constant && record.input_count > 0 && (record.flags & kOther) == 0;
        return constant;
    });
    return found && constant;
}

void look_upstream(Features& f, const TensorView& operand, double operand_top, OpSeq seq, const Lineage& lineage) {
    double smallest = operand_top;
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int distance) {
        f.operand_known = true;
        const OpTraits& op = traits_of(record.op->name);
        f.narrow_upstream = f.narrow_upstream || (distance <= kNearUpstream && info(record.dtype).is_narrow());
        f.of_loss = f.of_loss || (distance <= kNearUpstream && op.has(kLoss));
        if (distance <= kNearUpstream && f.reduction.empty() && op.has(kReduces))
            f.reduction = plain_op_name(record.op->name);
        const double top = magnitude_value(record.largest, record.dtype);
        if (record.numel > 1 && top > 0 && std::isfinite(top) && (record.flags & Lineage::kTouched) != 0) {
            if (smallest > 0 && top * kGrowthOfOp <= smallest) ++f.growing_ops;
            smallest = smallest > 0 ? std::min(smallest, top) : top;
        }
        // Behind the weights of an earlier layer lies another part of the program; growth still counts there.
        return distance < kNearGrowth;
    });
    if (smallest > 0) f.growth = operand_top / smallest;
}

/// Why a zero of the operand must be of a value that its narrow type cannot hold; empty when it need not. Followed
/// through ops that turn zeros, and nothing else, into zeros.
std::string flushed_upstream(const TensorView& operand, const Health& health, OpSeq seq, const Lineage& lineage) {
    std::string why;
    if (health.zero == 0 || !info(operand.dtype).is_narrow()) return why;
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int distance) {
        if (!why.empty() || distance > kNearFlush || !info(record.dtype).is_narrow()) return false;
        const OpTraits& op = traits_of(record.op->name);
        const std::string name(plain_op_name(record.op->name));
        const std::string type = info(record.dtype).name;
        const double least = magnitude_value(1, record.dtype);
        double bound = 0;  // of the result, in unlimited range
        Lineage::Record read;
        for (uint8_t i = 0; i < record.input_count; ++i) {
            const double top = lineage.find(record.inputs[i], read) ? magnitude_value(read.largest, read.dtype) : 0;
            bound = i == 0 ? top : bound * top;
        }
        const bool squares =
            op.is({Form::Square, Form::Power}) || (op.form == Form::Multiply && record.input_count == 1);
        const bool shrinks = squares || op.is({Form::Multiply, Form::Cast});
        if (squares) bound *= bound;
        const double smallest = record.smallest == ~uint64_t(0) ? 0 : magnitude_value(record.smallest, record.dtype);
        // What is added to values that are not negative, or bounds them, keeps them from zero unless it is zero.
        const bool lost =
            (record.flags & Lineage::kLostNumber) != 0 && op.is({Form::Add, Form::Clamp, Form::ClampBelow});
        if (lost || (op.form == Form::Add && record.input_count == 1 && health.min >= 0)) {
            why = op.form == Form::Add ? "the number that was added to keep it from zero is zero in " + type
                                       : "the number that bounds it from below is zero in " + type;
        } else if (op.form == Form::Product && smallest > 0 && smallest < 256 * least) {
            why = name + " went down to " + number(smallest, 3) + ", and " + type + " holds nothing below " +
                  number(least, 3);
        } else if (shrinks && record.largest == 0 && bound > 0 && bound < least / 2) {
            why = name + " of values up to " + number(bound, 3) + " is zero in " + type;
        }
        return op.has(kZerosOfZeros);
    });
    return why;
}

void look_for_wraps(Features& f, const TensorView& operand, const Health& health, OpSeq seq, const Lineage& lineage) {
    const OpTraits& op = traits_of(f.op);
    const bool overflows = is_exponential(op) || op.form == Form::Hyperbolic;
    const std::optional<WrappedOperand> found = wrapped_operand(operand, health, overflows, seq, lineage);
    if (!found) return;
    if (found->cut) {
        f.cut = found->evidence;
        return;
    }
    f.wrapped = found->evidence;
    f.wrapped_op = found->op;
    f.wrapped_type = found->type;
}

}  // namespace

TensorFact fact_of(const TensorView& t, const char* side, int32_t index, const Health& health, bool exact) {
    TensorFact fact;
    fact.name = std::string(side) + "[" + std::to_string(index) + "]";
    fact.dtype = t.dtype;
    fact.shape.assign(t.sizes, t.sizes + t.ndim);
    fact.health = health;
    fact.exact = exact;
    return fact;
}

Features measure(const OpEvent& event, const OpContext& context, std::span<const TensorFact> facts, KindSet kind,
                 const Lineage& lineage) {
    Features f;
    f.op = is_of_torch(event.op->name) ? plain_op_name(event.op->name) : std::string_view(event.op->name);
    f.kind = kind;
    f.step = context.step;
    f.in_module = context.in_module;
    f.gradients_off = !event.grad_enabled;
    f.weight_gain = weight_gain(event, context, facts);
    f.touched = context.touched;
    f.wrong_target = wrong_target(event, facts);
    f.none_read = !facts.empty() && std::all_of(facts.begin(), facts.end(), [](const TensorFact& fact) {
        return fact.shape.end() != std::find(fact.shape.begin(), fact.shape.end(), 0);
    });
    if (event.output_count > 0 && (event.outputs[0].flags & kScannable) != 0) f.dtype = event.outputs[0].dtype;
    f.narrow = info(f.dtype).is_narrow();
    const int blamed = traits_of(event).blamed;
    const TensorView* operand = nullptr;
    double operand_top = 0;
    int position = -1;
    int at = -1;  // of the operand, among those that can be scanned
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) == 0) continue;
        ++position;
        const Health* health = static_cast<size_t>(position) < facts.size() ? &facts[position].health : nullptr;
        const double top = health != nullptr ? health->absmax : 0;
        f.narrow = f.narrow || (info(input.dtype).is_narrow() && (input.flags & kNumber) == 0);
        f.operand_max = std::max(f.operand_max, top);
        if (health != nullptr && health->absmin > 0) {
            f.operand_min = f.operand_min > 0 ? std::min(f.operand_min, health->absmin) : health->absmin;
        }
        if (is_parameter(input)) {
            f.reads_parameter = true;
            f.parameter_max = std::max(f.parameter_max, top);
        }
        const bool better = blamed < 0 ? operand == nullptr || top > operand_top : i == blamed;
        if (better) {
            at = position;
            operand = &input;
            operand_top = top;
        }
    }
    // An integer that something is divided by is not scanned, but where it came from is known.
    if (blamed >= 0 && blamed < event.input_count && (event.inputs[blamed].flags & kScannable) == 0)
        operand = &event.inputs[blamed];
    if (operand == nullptr) return f;
    f.by_number = blamed >= 0 && (operand->flags & kNumber) != 0;
    f.operand_elements = operand->numel;
    f.operand_is_parameter = is_parameter(*operand);
    f.operand_touched = (operand->flags & kRequiresGrad) != 0 || lineage.touched(operand->storage);
    const bool seen = blamed >= 0 && at >= 0 && static_cast<size_t>(at) < facts.size();
    f.operand_constant = is_constant(*operand, context.seq, lineage);
    if (seen) f.flushed = flushed_upstream(*operand, facts[at].health, context.seq, lineage);
    const std::optional<Health> integers = integer_health(*operand);
    if (blamed >= 0 && (seen || integers))
        look_for_wraps(f, *operand, integers ? *integers : facts[at].health, context.seq, lineage);
    f.result_estimate = result_bound(event, facts, f.dtype);
    look_upstream(f, *operand, operand_top, context.seq, lineage);
    f.rounded = rounded_operand(traits_of(event), *operand, seen ? &facts[at] : nullptr, context.seq, lineage);
    return f;
}

}  // namespace numsan
