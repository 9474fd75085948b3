#include "host/cause/mechanism.h"

#include <algorithm>
#include <cmath>

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/cause/growth.h"
#include "host/cause/remarks.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

const TensorFact* operand(const MechanismFacts& facts, size_t index) {
    return facts.inputs != nullptr && index < facts.inputs->size() ? &(*facts.inputs)[index] : nullptr;
}

std::string count(int64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

double absmax_of(const MechanismFacts& facts) {
    double top = 0;
    for (const TensorFact& input : *facts.inputs) top = std::max(top, input.health.absmax);
    return top;
}

/// Whether a batch, channels second, has one value of each channel.
bool one_a_channel(const TensorFact* batch) {
    return batch != nullptr && batch->shape.size() >= 2 && batch->health.elements == batch->shape[1];
}

constexpr const char* kWroteOver = "no operand held a bad value; it wrote over them";

/// Which operands explain the result is not known: of an operator that torch does not define nothing is.
MechanismVerdict opaque(const MechanismFacts& facts, bool seen, double top) {
    MechanismVerdict verdict{Mechanism::OPAQUE, {}};
    if (seen) verdict.evidence.push_back("every operand that was read was finite, the largest " + number(top, 4));
    if (is_kernel(facts.op)) {
        verdict.evidence.push_back("what the kernel computes is its own");
    } else if (is_library_call(facts.op)) {
        if (!seen) verdict.evidence.push_back(kWroteOver);
    } else if (!is_of_torch(facts.op)) {
        verdict.evidence.push_back("`" + std::string(facts.op) +
                                   "` is no operator of torch's: what it computes is its own");
    }
    return verdict;
}

}  // namespace

MechanismVerdict mechanism_of(const MechanismFacts& facts) {
    const OpTraits& traits = traits_of(facts.op);
    const std::string op(plain_op_name(facts.op));
    std::vector<std::string> evidence;
    const bool none_read =
        facts.unavailable == 0 && std::all_of(facts.inputs->begin(), facts.inputs->end(),
                                              [](const TensorFact& t) { return t.health.elements == 0; });

    if (divides(traits)) {
        const TensorFact* divisor = operand(facts, static_cast<size_t>(traits.blamed));
        if (traits.form == Form::InverseRoot && divisor != nullptr && divisor->health.min < 0) {
            return {Mechanism::DOM, {"the operand of rsqrt goes down to " + number(divisor->health.min, 4)}};
        }
        if (divisor != nullptr && divisor->health.zero > 0) {
            evidence.push_back("the divisor has " + count(divisor->health.zero, "zero"));
            return {facts.backward ? Mechanism::SING : Mechanism::DIV0, evidence};
        }
        if (divisor_near_zero(facts.op, facts.kind, facts.dtype, *facts.inputs)) {
            return {facts.backward ? Mechanism::SING : Mechanism::OVF,
                    {"the divisor goes down to " + number(divisor->health.absmin, 3)}};
        }
        // A divisor that is a Python number or an integer tensor is not among the operands: only 0 makes a NaN or, out
        // of values of ordinary size, an infinity.
        const bool ordinary = absmax_of(facts) < std::sqrt(largest_value(facts.dtype));
        if (divisor == nullptr && (facts.kind == kNaN || ordinary))
            return {Mechanism::DIV0, {"finite values divided by 0, a number or an integer"}};
    }
    if (traits.form == Form::FusedUpdate) {
        const bool ordinary = absmax_of(facts) < std::sqrt(largest_value(facts.dtype));
        if (facts.kind == kNaN || ordinary)
            return {Mechanism::DIV0,
                    {"every operand was finite: the root of the squared gradients, plus eps, is zero"}};
    }
    if (traits.form == Form::CtcLoss && facts.kind != kNaN) {
        return {Mechanism::DATA, {"no alignment exists: a target is longer than its input allows"}};
    }
    if (facts.kind == kNaN && traits.form == Form::WeightNorm) {
        return {Mechanism::DIV0, {"a row of the weight has norm 0"}};
    }
    if (facts.kind == kNaN && traits.form == Form::BatchNorm && one_a_channel(operand(facts, 0))) {
        return {Mechanism::DIV0, {op + " of one value a channel: its running variance divides by n - 1"}};
    }
    if (facts.unavailable == 0 && (facts.kind == kNaN || none_read) && traits.has(kFewUndefined)) {
        evidence.push_back(none_read ? op + " of no elements"
                                     : op + " over too few elements, or with weights that sum to zero");
        return {Mechanism::DIV0, evidence};
    }
    if (has_domain(traits)) {
        if (const TensorFact* x = operand(facts, 0); x != nullptr && x->health.finite > 0) {
            evidence.push_back("the operand of " + op + " ranges from " + number(x->health.min, 4) + " to " +
                               number(x->health.max, 4) + ", " + count(x->health.zero, "zero") + " among them");
        }
        return {Mechanism::DOM, evidence};
    }
    if (facts.kind == kNegInf && traits.form == Form::LogDeterminant) {
        return {Mechanism::DOM, {"the matrix is singular: the logarithm of a determinant that is 0"}};
    }
    if (traits.form == Form::Power) {
        const TensorFact* base = operand(facts, 0);
        if (facts.kind == kNaN) {
            if (base != nullptr) evidence.push_back("the base goes down to " + number(base->health.min, 4));
            return {Mechanism::DOM, evidence};
        }
        if (base != nullptr && base->health.zero > 0 && base->health.absmax < kOrdinaryBase) {
            evidence.push_back("the base has " + count(base->health.zero, "zero") + " under a negative exponent");
            return {facts.backward ? Mechanism::SING : Mechanism::DIV0, evidence};
        }
    }

    const double top = absmax_of(facts);
    const bool seen =
        std::any_of(facts.inputs->begin(), facts.inputs->end(), [](const TensorFact& t) { return t.exact; });
    evidence.push_back(seen ? "every operand was finite, the largest " + number(top, 4) : std::string(kWroteOver));
    if (facts.loss_growth > 0) {
        evidence.push_back(said_of_loss_growth(facts.loss_growth));
        return {Mechanism::HYPER, evidence};
    }
    if (facts.parameter_growth.times >= kDivergedGrowth) {
        evidence.push_back(said_of(facts.parameter_growth));
        return {Mechanism::HYPER, evidence};
    }
    // Half of the exponent range: below it no product of two operands overflows.
    const bool large = top > std::sqrt(largest_value(facts.dtype));
    // A sum has no infinity of finite operands but where it does not fit.
    if (is_library_call(facts.op) && (facts.kind != kNaN || (seen && large))) return {Mechanism::OVF, evidence};
    if (!is_of_torch(facts.op) && (facts.kind == kNaN || !large)) return opaque(facts, seen, top);
    if (facts.kind != kNaN) {
        if (facts.backward && !large && !is_exponential(traits) && traits.form != Form::Hyperbolic)
            return {Mechanism::SING, evidence};
        return {Mechanism::OVF, evidence};
    }
    if (large) return {Mechanism::OVF, evidence};
    if (facts.backward) return {Mechanism::SING, evidence};
    // Of an op that is defined for all finite operands none is to blame.
    if (traits.total != Total::No) return opaque(facts, seen, top);
    return {Mechanism::DOM, evidence};
}

}  // namespace numsan
