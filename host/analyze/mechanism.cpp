#include "host/analyze/mechanism.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "host/core/value_classes.h"

namespace numsan {
namespace {

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

const TensorFact* operand(const MechanismFacts& facts, size_t index) {
    return facts.inputs != nullptr && index < facts.inputs->size() ? &(*facts.inputs)[index] : nullptr;
}

std::string count(int64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

/// Largest finite value of an element type, from its layout.
double largest(DType dtype) {
    const DTypeInfo& t = info(dtype);
    return decode_magnitude(value_classes(t).smallest_nonfinite() - 1, t);
}

double absmax_of(const MechanismFacts& facts) {
    double top = 0;
    for (const TensorFact& input : *facts.inputs) top = std::max(top, input.health.absmax);
    return top;
}

enum class Growth : uint8_t { None, Slow, Fast };
struct TotalOp {
    std::string_view name;
    Growth growth;
};
constexpr TotalOp kTotalOps[] = {
#define NUMSAN_TOTAL(name, growth) {#name, Growth::growth},
#include "host/analyze/total_ops.def"
#undef NUMSAN_TOTAL
};

const TotalOp* total(std::string_view plain_name) {
    const auto it = std::find_if(std::begin(kTotalOps), std::end(kTotalOps),
                                 [&](const TotalOp& op) { return op.name == plain_name; });
    return it == std::end(kTotalOps) ? nullptr : it;
}

struct KeepingOp {
    std::string_view name;
    KindSet kinds;
    int32_t operands;
};
constexpr KeepingOp kKeepingOps[] = {
#define NUMSAN_KEEPING(name, kinds, operands) {#name, kinds, operands},
#include "host/analyze/keeping_ops.def"
#undef NUMSAN_KEEPING
};

/// Whether a batch, channels second, has one value of each channel.
bool one_a_channel(const TensorFact* batch) {
    return batch != nullptr && batch->shape.size() >= 2 && batch->health.elements == batch->shape[1];
}

/// Which operand an operator divides by; -1 when it does not divide.
int divisor_of(const std::string& op) {
    if (one_of(op, {"div", "true_divide", "divide", "fmod", "remainder"})) return 1;
    if (op == "addcdiv") return 2;
    if (one_of(op, {"reciprocal", "rsqrt"})) return 0;
    return -1;
}

}  // namespace

std::string plain_op_name(std::string_view op) {
    if (const size_t colons = op.rfind("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
    if (const size_t dot = op.find('.'); dot != std::string_view::npos) op = op.substr(0, dot);
    if (op.rfind("_foreach_", 0) == 0) op.remove_prefix(9);
    while (!op.empty() && op.back() == '_') op.remove_suffix(1);
    return std::string(op);
}

bool hands_on_only(std::string_view name, KindSet kinds, DType dtype) {
    const TotalOp* op = total(plain_op_name(name));
    if (op == nullptr) return false;
    if ((kinds & kNaN) != 0) return true;
    return op->growth == Growth::None || (op->growth == Growth::Slow && info(dtype).lane_bytes >= 4);
}

KindSet kept_kinds(std::string_view name, int32_t operand) {
    const std::string op = plain_op_name(name);
    const auto* const it = std::find_if(std::begin(kKeepingOps), std::end(kKeepingOps),
                                        [&](const KeepingOp& one) { return one.name == op; });
    return it != std::end(kKeepingOps) && operand < it->operands ? it->kinds : KindSet(0);
}

bool may_be_certain(std::string_view name) {
    return one_of(plain_op_name(name),
                  {"log",   "log2",   "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "asin",     "acos", "acosh",
                   "atanh", "erfinv", "div",   "pow",   "exp",  "exp2",  "expm1",      "_to_copy", "copy", "square"});
}

KindSet certain_kinds(std::string_view name, std::span<const Health> operands, std::span<const double> scalars,
                      DType dtype) {
    if (operands.empty() || !may_be_certain(name)) return 0;
    const std::string op = plain_op_name(name);
    const Health& x = operands[0];
    if (x.finite == 0) return 0;
    const auto when = [](bool holds, KindSet kinds) { return holds ? kinds : KindSet(0); };
    if (one_of(op, {"log", "log2", "log10"})) return when(x.min < 0, kNaN) | when(x.zero > 0, kNegInf);
    if (op == "log1p") return when(x.min < -1, kNaN) | when(x.min == -1, kNegInf);
    if (op == "sqrt") return when(x.min < 0, kNaN);
    if (op == "rsqrt") return when(x.min < 0, kNaN) | when(x.zero > 0, kPosInf);
    if (op == "reciprocal") return when(x.zero > 0, kPosInf);
    if (one_of(op, {"asin", "acos"})) return when(x.absmax > 1, kNaN);
    if (op == "acosh") return when(x.min < 1, kNaN);
    if (one_of(op, {"atanh", "erfinv"}))
        return when(x.absmax > 1, kNaN) | when(x.max == 1, kPosInf) | when(x.min == -1, kNegInf);
    if (op == "div" && operands.size() > 1 && operands[1].zero > 0) {
        // 0 over 0 is a NaN, and which elements meet is not known.
        if (x.zero > 0) return 0;
        return x.min > 0 ? KindSet(kPosInf) : x.max < 0 ? KindSet(kNegInf) : kAnyInf;
    }
    if (op == "div" && operands.size() == 1 && !scalars.empty() && scalars[0] == 0) {
        return x.zero > 0 ? KindSet(kNaN) : kAnyInf;
    }
    if (op == "pow" && operands.size() == 1 && !scalars.empty()) {
        const double exponent = scalars[0];
        return when(x.min < 0 && exponent != std::floor(exponent), kNaN) | when(x.zero > 0 && exponent < 0, kPosInf);
    }
    const double top = largest(dtype);
    if (op == "exp") return when(x.max > std::log(top), kPosInf);
    if (op == "exp2") return when(x.max > std::log2(top), kPosInf);
    if (op == "expm1") return when(x.max > std::log(top), kPosInf);
    if (one_of(op, {"_to_copy", "copy"})) {
        // To the nearest: half a place beyond the largest value still rounds to it.
        const double beyond = top + std::ldexp(1, std::ilogb(top) - info(dtype).mantissa_bits - 1);
        const bool infinite = value_classes(info(dtype)).infinity <= info(dtype).magnitude_mask();
        return when(x.max > beyond, infinite ? kPosInf : kNaN) | when(x.min < -beyond, infinite ? kNegInf : kNaN);
    }
    if (op == "square") return when(x.absmax > std::sqrt(top), kPosInf);
    return 0;
}

MechanismVerdict mechanism_of(const MechanismFacts& facts) {
    const std::string op = plain_op_name(facts.op);
    std::vector<std::string> evidence;
    const bool none_read = facts.gone == 0 && std::all_of(facts.inputs->begin(), facts.inputs->end(),
                                                          [](const TensorFact& t) { return t.health.elements == 0; });

    if (const int index = divisor_of(op); index >= 0) {
        const TensorFact* divisor = operand(facts, static_cast<size_t>(index));
        if (op == "rsqrt" && divisor != nullptr && divisor->health.min < 0) {
            return {Mechanism::DOM, {"the operand of rsqrt goes down to " + number(divisor->health.min)}};
        }
        if (divisor != nullptr && divisor->health.zero > 0) {
            evidence.push_back("the divisor has " + count(divisor->health.zero, "zero"));
            return {facts.backward ? Mechanism::SING : Mechanism::DIV0, evidence};
        }
        // A divisor that is a Python number or an integer tensor is not among the operands: only 0 makes a NaN or, out
        // of values of ordinary size, an infinity.
        const bool ordinary = absmax_of(facts) < std::sqrt(largest(facts.dtype));
        if (divisor == nullptr && (facts.kind == kNaN || ordinary))
            return {Mechanism::DIV0, {"finite values divided by 0, a number or an integer"}};
    }
    if (op.rfind("_fused_adam", 0) == 0 || op.rfind("_fused_adagrad", 0) == 0) {
        const bool ordinary = absmax_of(facts) < std::sqrt(largest(facts.dtype));
        if (facts.kind == kNaN || ordinary)
            return {Mechanism::DIV0,
                    {"every operand was finite: the root of the squared gradients, plus eps, is zero"}};
    }
    if (op == "_ctc_loss" && facts.kind != kNaN) {
        return {Mechanism::DATA, {"no alignment exists: a target is longer than its input allows"}};
    }
    if (facts.kind == kNaN && op.find("weight_norm") != std::string::npos) {
        return {Mechanism::DIV0, {"a row of the weight has norm 0"}};
    }
    if (facts.kind == kNaN && op.find("batch_norm") != std::string::npos && one_a_channel(operand(facts, 0))) {
        return {Mechanism::DIV0, {op + " of one value a channel: its running variance divides by n - 1"}};
    }
    if (facts.gone == 0 && (facts.kind == kNaN || none_read)) {
        if (one_of(op, {"mean", "std", "var", "std_mean", "var_mean", "nll_loss_forward", "nll_loss2d_forward"})) {
            evidence.push_back(none_read ? op + " of no elements"
                                         : op + " over too few elements, or with weights that sum to zero");
            return {Mechanism::DIV0, evidence};
        }
    }
    if (one_of(op, {"log", "log2", "log10", "log1p", "sqrt", "acos", "asin", "acosh", "atanh", "lgamma", "digamma",
                    "polygamma", "erfinv", "logit", "special_xlog1py", "xlogy"})) {
        if (const TensorFact* x = operand(facts, 0); x != nullptr && x->health.finite > 0) {
            evidence.push_back("the operand of " + op + " ranges from " + number(x->health.min) + " to " +
                               number(x->health.max) + ", " + count(x->health.zero, "zero") + " among them");
        }
        return {Mechanism::DOM, evidence};
    }
    if (facts.kind == kNegInf && one_of(op, {"_linalg_slogdet", "linalg_slogdet", "slogdet", "logdet"})) {
        return {Mechanism::DOM, {"the matrix is singular: the logarithm of a determinant that is 0"}};
    }
    if (op == "pow") {
        const TensorFact* base = operand(facts, 0);
        if (facts.kind == kNaN) {
            if (base != nullptr) evidence.push_back("the base goes down to " + number(base->health.min));
            return {Mechanism::DOM, evidence};
        }
        if (base != nullptr && base->health.zero > 0 && base->health.absmax < 1e4) {
            evidence.push_back("the base has " + count(base->health.zero, "zero") + " under a negative exponent");
            return {facts.backward ? Mechanism::SING : Mechanism::DIV0, evidence};
        }
    }

    const double top = absmax_of(facts);
    const bool seen =
        std::any_of(facts.inputs->begin(), facts.inputs->end(), [](const TensorFact& t) { return t.exact; });
    evidence.push_back(seen ? "every operand was finite, the largest " + number(top)
                            : std::string("no operand held a bad value; it wrote over them"));
    if (facts.diverging) {
        evidence.push_back("the loss had grown over the steps before");
        return {Mechanism::HYPER, evidence};
    }
    // Half of the exponent range: below it no product of two operands overflows.
    const bool large = top > std::sqrt(largest(facts.dtype));
    if (facts.kind != kNaN) {
        if (facts.backward && !large && !one_of(op, {"exp", "exp2", "expm1", "sinh", "cosh"}))
            return {Mechanism::SING, evidence};
        return {Mechanism::OVF, evidence};
    }
    if (large) return {Mechanism::OVF, evidence};
    if (facts.backward) return {Mechanism::SING, evidence};
    // Only of ops that are defined for all finite operands can be said that the kernel is at fault.
    // A library's own operator says nothing of a domain.
    return {total(op) != nullptr || facts.op.rfind("aten::", 0) != 0 ? Mechanism::KERN : Mechanism::DOM, evidence};
}

}  // namespace numsan
