#include "host/ops/effect.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "host/base/value_classes.h"

namespace numsan {
namespace {

KindSet when(bool holds, KindSet kinds) { return holds ? kinds : KindSet(0); }

/// A quotient of finite values by a zero.
KindSet quotient_by_zero(const Health& dividend) {
    // 0 / 0 is a NaN, and which elements meet is not known.
    if (dividend.zero > 0) return 0;
    return dividend.min > 0 ? KindSet(kPosInf) : dividend.max < 0 ? KindSet(kNegInf) : kAnyInf;
}

/// A rounding to nearest: half a place beyond the largest value still rounds to it.
KindSet beyond_range(const Health& x, DType dtype) {
    const DTypeInfo& type = info(dtype);
    const double top = largest_value(dtype);
    const double beyond = top + std::ldexp(1, std::ilogb(top) - type.mantissa_bits - 1);
    const bool infinite = value_classes(type).infinity <= type.magnitude_mask();
    return when(x.max > beyond, infinite ? kPosInf : kNaN) | when(x.min < -beyond, infinite ? kNegInf : kNaN);
}

KindSet must_of(const OpCall& call) {
    const auto& [op, operands, scalars, dtype, results] = call;
    const bool known = std::all_of(operands.begin(), operands.end(), [](const Operand& o) { return o.known; });
    if (operands.empty() || !known || operands[0].health.finite == 0) return 0;
    const Health& x = operands[0].health;
    switch (op.form) {
        case Form::Log: return when(x.min < 0, kNaN) | when(x.zero > 0, kNegInf);
        case Form::Log1p: return when(x.min < -1, kNaN) | when(x.min == -1, kNegInf);
        case Form::Root: return when(x.min < 0, kNaN);
        case Form::InverseRoot: return when(x.min < 0, kNaN) | when(x.zero > 0, kPosInf);
        case Form::Reciprocal: return when(x.zero > 0, kPosInf);
        case Form::ArcSine: return when(x.absmax > 1, kNaN);
        case Form::ArcCosh: return when(x.min < 1, kNaN);
        case Form::ArcTanh: return when(x.absmax > 1, kNaN) | when(x.max == 1, kPosInf) | when(x.min == -1, kNegInf);
        case Form::Divide:
            if (operands.size() > 1) return when(operands[1].health.zero > 0, quotient_by_zero(x));
            if (scalars.empty() || scalars[0] != 0) return 0;
            return x.zero > 0 ? KindSet(kNaN) : kAnyInf;
        case Form::Power:
            if (operands.size() != 1 || scalars.empty()) return 0;
            return when(x.min < 0 && scalars[0] != std::floor(scalars[0]), kNaN) |
                   when(x.zero > 0 && scalars[0] < 0, kPosInf);
        case Form::Exp:
        case Form::Expm1: return when(x.max > std::log(largest_value(dtype)), kPosInf);
        case Form::Exp2: return when(x.max > std::log2(largest_value(dtype)), kPosInf);
        case Form::Cast: return beyond_range(x, dtype);
        case Form::Square: return when(x.absmax > std::sqrt(largest_value(dtype)), kPosInf);
        default: return 0;
    }
}

KindSet may_of(const OpTraits& op, DType dtype) {
    switch (op.total) {
        case Total::None: return 0;
        case Total::Slow: return info(dtype).is_narrow() ? kAnyInf : KindSet(0);
        case Total::Fast: return kAnyInf;
        default: return kNaN | kAnyInf;
    }
}

/// |base| ** exponent is largest at an end of both ranges.
std::optional<double> power_bound(const Health& base, double least, double most) {
    double bound = 0;
    for (const double exponent : {least, most}) {
        if (exponent < 0 && (base.zero > 0 || !(base.absmin > 0))) return std::nullopt;
        for (const double x : {base.absmin, base.absmax}) bound = std::max(bound, std::pow(x, exponent));
    }
    return bound;
}

std::optional<double> quotient_bound(double dividend, const Health& divisor) {
    if (divisor.zero > 0 || !(divisor.absmin > 0)) return std::nullopt;
    return dividend / divisor.absmin;
}

std::optional<double> bound_of(const OpCall& call) {
    const OpTraits& op = call.op;
    const auto& operands = call.operands;  // a structured binding could not be captured
    const auto& scalars = call.scalars;
    // A copy writes over its first operand.
    if (op.form == Form::Cast && operands.size() > 1)
        return operands[1].known ? std::optional(operands[1].health.absmax) : std::nullopt;
    const bool known = std::all_of(operands.begin(), operands.end(), [](const Operand& o) { return o.known; });
    if (operands.empty() || !known) return std::nullopt;
    const size_t count = operands.size();
    const auto top = [&](size_t i) { return operands[i].health.absmax; };
    const Health& x = operands[0].health;
    switch (op.form) {
        case Form::Cast:
        case Form::Move:
        case Form::Negate:
        case Form::Magnitude:
        case Form::Rectify:
        case Form::Mean: return count == 1 ? std::optional(top(0)) : std::nullopt;
        case Form::Add:
        case Form::Subtract:
        case Form::SubtractFrom:
        case Form::Interpolate: return top(0) + (count > 1 ? top(1) : 0);
        case Form::Sum: return top(0) * terms_of(call);
        case Form::Norm: return top(0) * std::sqrt(terms_of(call));
        case Form::Multiply:
            if (count == 1 && scalars.size() == 1) return top(0) * std::fabs(scalars[0]);
            return top(0) * top(count > 1 ? 1 : 0);  // a tensor by itself is one operand
        case Form::Square: return top(0) * top(0);
        case Form::MatrixProduct: return count > 1 ? std::optional(top(0) * top(1) * terms_of(call)) : std::nullopt;
        case Form::AddMatrixProduct:
            return count > 2 ? std::optional(top(0) + top(1) * top(2) * terms_of(call)) : std::nullopt;
        case Form::Convolve:
            if (count < 2) return std::nullopt;
            return top(0) * top(1) * terms_of(call) + (count > 2 ? top(2) : 0);
        case Form::ConvolveBackward:
            if (count != 3) return std::nullopt;
            return top(0) * std::max(top(1), top(2)) * terms_of(call);
        case Form::Power:
            if (count > 1) return power_bound(x, operands[1].health.min, operands[1].health.max);
            return scalars.empty() ? power_bound(x, 2, 2) : power_bound(x, scalars[0], scalars[0]);
        case Form::Divide:
            if (count > 1) return quotient_bound(top(0), operands[1].health);
            return scalars.size() == 1 && scalars[0] != 0 ? std::optional(top(0) / std::fabs(scalars[0]))
                                                          : std::nullopt;
        case Form::Reciprocal: return quotient_bound(1, x);
        case Form::InverseRoot:
            if (const std::optional<double> square = quotient_bound(1, x)) return std::sqrt(*square);
            return std::nullopt;
        case Form::Exp: return std::exp(x.max);
        case Form::Exp2: return std::exp2(x.max);
        case Form::Expm1: return std::max(std::expm1(x.max), -std::expm1(x.min));
        default: return std::nullopt;
    }
}

double elements(const Operand& operand) {
    if (operand.known) return static_cast<double>(operand.health.elements);
    double product = 1;
    for (const int64_t size : operand.shape) product *= static_cast<double>(size);
    return product;
}

}  // namespace

bool is_decided_by_ranges(const OpTraits& op) {
    return is_exponential(op) || is_logarithm(op) ||
           op.is({Form::Root, Form::InverseRoot, Form::Reciprocal, Form::ArcSine, Form::ArcCosh, Form::ArcTanh,
                  Form::Divide, Form::Power, Form::Cast, Form::Square});
}

double terms_of(const OpCall& call) {
    const std::span<const Operand> operands = call.operands;
    const auto last = [&](size_t i) {
        const bool there = i < operands.size() && !operands[i].shape.empty();
        return there ? static_cast<double>(std::max<int64_t>(operands[i].shape.back(), 1)) : 1.0;
    };
    switch (call.op.form) {
        case Form::Sum:
        case Form::Mean:
        case Form::Norm:
            if (operands.empty()) return 1;
            return std::max(std::floor(elements(operands[0]) / std::max<double>(double(call.results), 1)), 1.0);
        case Form::MatrixProduct: return last(0);
        case Form::AddMatrixProduct: return last(1);
        case Form::Convolve:  // all of the weight but its first dimension, the channels of the result
            if (operands.size() < 2 || operands[1].shape.empty()) return 1;
            return elements(operands[1]) / std::max<double>(double(operands[1].shape[0]), 1);
        case Form::ConvolveBackward:
            return operands.size() < 3 ? 1 : std::max(elements(operands[0]), elements(operands[2]));
        default: return 1;
    }
}

Effect effect(const OpCall& call) {
    return {must_of(call), may_of(call.op, call.dtype), bound_of(call), call.op.blamed};
}

}  // namespace numsan
