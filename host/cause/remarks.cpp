#include "host/cause/remarks.h"

#include <cmath>

#include "host/base/value_classes.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

/// Products of what is not larger stay in the type's range.
double ordinary(DType dtype) { return std::sqrt(largest_value(dtype)); }

bool is_divisor(const OpTraits& op, size_t index) { return divides(op) && op.blamed == static_cast<int>(index); }

/// Of an op that left the type's range.
std::string remark_on_overflow(const OpTraits& op, std::string_view name, DType dtype, const Health& x, bool divisor) {
    const std::string type = info(dtype).name;
    const double top = largest_value(dtype);
    if (is_exponential(op)) {
        const double limit = op.form == Form::Exp2 ? std::log2(top) : std::log(top);
        return x.max > limit ? "above " + number(limit, 4) + ", where " + std::string(name) + " leaves " + type : "";
    }
    if (divisor) return "the smallest magnitude is " + number(x.absmin, 3);
    if (op.form == Form::Cast) return x.absmax > top ? "beyond the largest " + type : "";
    return x.absmax > ordinary(dtype) ? "large for " + type : "";
}

}  // namespace

bool divisor_near_zero(std::string_view op, KindSet kind, DType dtype, const std::vector<TensorFact>& operands) {
    const OpTraits& traits = traits_of(op);
    if (!divides(traits) || (kind & kNaN) != 0 || traits.blamed < 0) return false;
    const auto at = static_cast<size_t>(traits.blamed);
    if (at >= operands.size()) return false;
    const Health& divisor = operands[at].health;
    if (!operands[at].exact || divisor.zero > 0 || !(divisor.absmin > 0)) return false;
    double dividend = 1;
    for (size_t i = 0; i < at; ++i) dividend = std::max(dividend, operands[i].health.absmax);
    const bool extreme = divisor.absmin < 1 / ordinary(dtype);
    return (dividend < ordinary(dtype) || extreme) && divisor.absmin < dividend / largest_value(dtype);
}

void remark_on(std::vector<TensorFact>& operands, std::string_view op, Mechanism mechanism, KindSet kind, DType dtype) {
    const OpTraits& traits = traits_of(op);
    const std::string_view name = plain_op_name(op);
    const bool near_zero = divisor_near_zero(op, kind, dtype, operands);
    for (size_t i = 0; i < operands.size(); ++i) {
        TensorFact& operand = operands[i];
        const Health& x = operand.health;
        if (!operand.exact || x.elements == 0 || x.finite < x.elements) continue;
        const bool divisor = is_divisor(traits, i);
        if (mechanism == Mechanism::DOM) {
            // The first of a power is its base.
            if (i == 0) operand.remark = "outside the domain of " + std::string(name);
        } else if (traits.form == Form::BinaryCrossEntropy && i == 1) {
            if (x.min < 0 || x.max > 1) operand.remark = "outside 0 to 1, where the loss has no lower bound";
        } else if (mechanism == Mechanism::DIV0) {
            if (i == 0 && x.zero == 0 && traits.has(kFewUndefined)) operand.remark = "too few elements";
        } else if (mechanism == Mechanism::OVF || mechanism == Mechanism::HYPER) {
            if (!divisor || near_zero) operand.remark = remark_on_overflow(traits, name, dtype, x, divisor);
        }
    }
}

}  // namespace numsan
