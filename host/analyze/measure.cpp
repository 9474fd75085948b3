#include "host/analyze/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <vector>

#include "host/analyze/integers.h"
#include "host/analyze/mechanism.h"
#include "host/analyze/wrapped_operand.h"
#include "host/core/value_classes.h"

namespace numsan {
namespace {

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

bool narrow(DType dtype) { return info(dtype).lane_bytes < 4; }

bool saturates(const std::string& op) {
    return one_of(op, {"_softmax", "softmax",   "sigmoid",     "tanh",         "exp",
                       "exp2",     "erf",       "softplus",    "_log_softmax", "expm1",
                       "clamp",    "clamp_min", "clamp_max",   "hardtanh",     "log_sigmoid_forward",
                       "silu",     "gelu",      "hardsigmoid", "cumprod",      "prod",
                       "one_hot"});
}

bool reduces(const std::string& op) {
    return one_of(op, {"sum",
                       "mean",
                       "var",
                       "std",
                       "var_mean",
                       "std_mean",
                       "linalg_vector_norm",
                       "norm",
                       "amax",
                       "amin",
                       "max",
                       "min",
                       "nansum",
                       "bincount",
                       "count_nonzero",
                       "scatter_add",
                       "index_add",
                       "native_layer_norm",
                       "native_batch_norm",
                       "native_group_norm",
                       "mm",
                       "bmm",
                       "addmm",
                       "dot"});
}

/// Elements that one result of a product or a sum adds up.
double summed(const OpEvent& event) {
    const std::string op = plain_op_name(event.op->name);
    if (event.input_count == 0) return 1;
    const TensorView& first = event.inputs[0];
    if (one_of(op, {"sum", "cumsum", "linalg_vector_norm", "norm", "mean", "dot"})) {
        const int64_t results = event.output_count > 0 ? std::max<int64_t>(event.outputs[0].numel, 1) : 1;
        return static_cast<double>(std::max<int64_t>(first.numel / results, 1));
    }
    const int factor = one_of(op, {"addmm", "baddbmm", "addmv", "addbmm"}) ? 1 : 0;
    if (factor < event.input_count && event.inputs[factor].ndim > 0) {
        const TensorView& a = event.inputs[factor];
        return static_cast<double>(std::max<int64_t>(a.sizes[a.ndim - 1], 1));
    }
    return 1;
}

/// A bound of the result's magnitude if numbers had no largest value; 0 when the op says nothing about it.
double estimate(const std::string& op, const OpEvent& event, std::span<const TensorFact> facts) {
    // What a copy wrote over is no operand of it; any other operand that is gone leaves nothing to say.
    if (one_of(op, {"copy"}) && facts.size() > 1) return facts[1].exact ? facts[1].health.absmax : 0;
    std::vector<double> top;
    for (const TensorFact& fact : facts) {
        if (!fact.exact) return 0;
        top.push_back(fact.health.absmax);
    }
    if (top.empty()) return 0;
    const double product = top.size() > 1 ? top[0] * top[1] : top[0] * top[0];
    if (one_of(op, {"mul", "square"})) return product;
    if (one_of(op, {"mm", "bmm", "mv", "dot", "matmul"})) return product * summed(event);
    if (one_of(op, {"addmm", "baddbmm", "addmv", "addbmm"}) && top.size() > 2) {
        return top[0] + top[1] * top[2] * summed(event);
    }
    if (one_of(op, {"add", "sub", "rsub", "lerp"})) return top[0] + (top.size() > 1 ? top[1] : 0);
    if (one_of(op, {"sum", "cumsum"})) return top[0] * summed(event);
    if (one_of(op, {"linalg_vector_norm", "norm"})) return top[0] * std::sqrt(summed(event));
    if (one_of(op, {"_to_copy", "copy", "to", "clone", "neg", "abs", "mean"})) return top[0];
    if (op == "exp") return std::exp(facts[0].health.max);
    if (op == "exp2") return std::exp2(facts[0].health.max);
    if (op == "expm1") return std::expm1(facts[0].health.max);
    if (op == "pow") {
        const double exponent = facts.size() > 1 ? facts[1].health.max : event.scalar_count > 0 ? event.scalars[0] : 2;
        return std::pow(exponent < 0 && facts[0].health.absmin > 0 ? facts[0].health.absmin : top[0], exponent);
    }
    if (op == "div" && facts.size() > 1 && facts[1].health.absmin > 0 && facts[1].health.zero == 0) {
        return top[0] / facts[1].health.absmin;
    }
    if (op == "reciprocal" && facts[0].health.zero == 0 && facts[0].health.absmin > 0)
        return 1 / facts[0].health.absmin;
    if (op == "rsqrt" && facts[0].health.zero == 0 && facts[0].health.absmin > 0) {
        return 1 / std::sqrt(facts[0].health.absmin);
    }
    return 0;
}

/// How many times larger a parameter that is a matrix or a kernel makes values: with entries of one size, by that size
/// times the root of what is summed. The largest of many normal numbers is some four times their size.
double weight_gain(const OpEvent& event, const OpContext& context, std::span<const TensorFact> facts) {
    const std::string op = plain_op_name(event.op->name);
    if (!one_of(op, {"mm", "addmm", "bmm", "baddbmm", "convolution"})) return 0;
    constexpr double kLargestOfMany = 4;
    double gain = 0;
    size_t position = 0;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) == 0) continue;
        const TensorFact* fact = position < facts.size() ? &facts[position] : nullptr;
        ++position;
        const bool weight = is_parameter(input) || (kin_of(context, input, i) & kViewOfParameter) != 0;
        if (!weight || input.ndim < 2 || fact == nullptr || !fact->exact) continue;
        const bool second = i == event.input_count - 1;
        const int64_t terms = op == "convolution" ? input.numel / std::max<int64_t>(input.sizes[0], 1)
                                                  : input.sizes[second ? input.ndim - 2 : input.ndim - 1];
        gain = std::max(gain, fact->health.absmax / kLargestOfMany * std::sqrt(static_cast<double>(terms)));
    }
    return gain;
}

void look_upstream(Features& f, const TensorView& operand, double operand_top, int64_t seq, const Lineage& lineage) {
    constexpr int kNear = 6;
    double smallest = operand_top;
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int distance) {
        f.operand_known = true;
        const std::string op = plain_op_name(record.op->name);
        f.narrow_upstream = f.narrow_upstream || (distance <= kNear && narrow(record.dtype));
        if (distance <= kNear && f.saturating.empty() && saturates(op)) f.saturating = op;
        f.of_loss = f.of_loss || (distance <= kNear && is_loss_op(op));
        if (distance <= kNear && f.reduction.empty() && reduces(op)) f.reduction = op;
        const double top = magnitude_value(record.largest, record.dtype);
        if (record.numel > 1 && top > 0 && std::isfinite(top) && (record.flags & Lineage::kTouched) != 0) {
            if (smallest > 0 && top * 10 <= smallest) ++f.growing_ops;
            smallest = smallest > 0 ? std::min(smallest, top) : top;
        }
        // Behind the weights of an earlier layer lies another part of the program; growth still counts there.
        return distance < 24;
    });
    if (smallest > 0) f.growth = operand_top / smallest;
}

/// Why a zero of the operand must be of a value that its narrow type cannot hold; empty when it need not. Followed
/// through ops that turn zeros, and nothing else, into zeros.
std::string flushed_upstream(const TensorView& operand, const Health& health, int64_t seq, const Lineage& lineage) {
    std::string why;
    if (health.zero == 0 || !narrow(operand.dtype)) return why;
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int distance) {
        constexpr int kNear = 3;
        if (!why.empty() || distance > kNear || !narrow(record.dtype)) return false;
        const std::string op = plain_op_name(record.op->name);
        const std::string type = info(record.dtype).name;
        const double least = magnitude_value(1, record.dtype);
        double bound = 0;  // of the result, in unlimited range
        Lineage::Record read;
        for (uint8_t i = 0; i < record.input_count; ++i) {
            const double top = lineage.find(record.inputs[i], read) ? magnitude_value(read.largest, read.dtype) : 0;
            bound = i == 0 ? top : bound * top;
        }
        const bool squares = one_of(op, {"square", "pow"}) || (op == "mul" && record.input_count == 1);
        const bool shrinks = squares || one_of(op, {"mul", "_to_copy"});
        if (squares) bound *= bound;
        const double smallest = record.smallest == ~uint64_t(0) ? 0 : magnitude_value(record.smallest, record.dtype);
        // What is added to values that are not negative, or bounds them, keeps them from zero unless it is zero.
        const bool lost = (record.flags & Lineage::kLostNumber) != 0 && one_of(op, {"add", "clamp", "clamp_min"});
        if (lost || (op == "add" && record.input_count == 1 && health.min >= 0)) {
            why = op == "add" ? "the number that was added to keep it from zero is zero in " + type
                              : "the number that bounds it from below is zero in " + type;
        } else if (one_of(op, {"cumprod", "prod"}) && smallest > 0 && smallest < 256 * least) {
            why = op + " went down to " + short_number(smallest) + ", and " + type + " holds nothing below " +
                  short_number(least);
        } else if (shrinks && record.largest == 0 && bound > 0 && bound < least / 2) {
            why = op + " of values up to " + short_number(bound) + " is zero in " + type;
        }
        return one_of(op, {"sqrt", "div", "_to_copy", "copy", "clone", "gather", "select", "index"});
    });
    return why;
}

void look_for_wraps(Features& f, const TensorView& operand, const Health& health, int64_t seq, const Lineage& lineage) {
    const bool overflows = one_of(f.op, {"exp", "exp2", "expm1", "sinh", "cosh"});
    const std::optional<WrappedOperand> found = wrapped_operand(operand, health, overflows, seq, lineage);
    if (!found) return;
    f.wrapped = found->evidence;
    f.wrapped_op = found->op;
    f.wrapped_type = found->type;
}

}  // namespace

bool is_loss_op(const std::string& op) {
    return one_of(op, {"nll_loss_forward", "nll_loss2d_forward", "binary_cross_entropy", "_ctc_loss", "mse_loss",
                       "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "xlogy"});
}

double magnitude_value(uint64_t pattern, DType dtype) {
    return decode_magnitude(pattern & info(dtype).magnitude_mask(), info(dtype));
}

int blamed_operand(const std::string& op) {
    if (one_of(op, {"div", "true_divide", "divide", "fmod", "remainder"})) return 1;
    if (op == "addcdiv") return 2;
    if (op.find("weight_norm") != std::string::npos) return 0;
    if (one_of(op, {"reciprocal", "rsqrt", "log",   "log2",   "log10",   "log1p",  "sqrt",  "acos",
                    "asin",       "acosh", "atanh", "lgamma", "digamma", "erfinv", "logit", "exp",
                    "exp2",       "expm1", "pow",   "square", "sum",     "mean",   "std",   "var"})) {
        return 0;
    }
    return -1;
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

Features measure(const OpEvent& event, const OpContext& context, std::span<const TensorFact> facts, KindSet kind,
                 const Lineage& lineage) {
    Features f;
    f.op = plain_op_name(event.op->name);
    f.kind = kind;
    f.step = context.step;
    f.in_module = context.in_module;
    f.gradients_off = !event.grad_enabled;
    f.weight_gain = weight_gain(event, context, facts);
    f.touched = context.touched;
    if (event.output_count > 0 && (event.outputs[0].flags & kScannable) != 0) f.dtype = event.outputs[0].dtype;
    f.narrow = narrow(f.dtype);
    const int blamed = blamed_operand(f.op);
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
        f.narrow = f.narrow || (narrow(input.dtype) && (input.flags & kNumber) == 0);
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
    if (seen) f.flushed = flushed_upstream(*operand, facts[at].health, context.seq, lineage);
    const std::optional<Health> integers = integer_health(*operand);
    if (blamed >= 0 && (seen || integers))
        look_for_wraps(f, *operand, integers ? *integers : facts[at].health, context.seq, lineage);
    f.result_estimate = estimate(f.op, event, facts);
    look_upstream(f, *operand, operand_top, context.seq, lineage);
    return f;
}

}  // namespace numsan
