// What was too small for its type: results that should not be zero and are, or that have hardly a bit left.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <vector>

#include "host/analyze/list_member.h"
#include "host/analyze/measure.h"
#include "host/analyze/mechanism.h"
#include "host/analyze/zeros.h"
#include "host/core/value_classes.h"

namespace numsan {
namespace {

constexpr double kFlushedShare = 0.5;
constexpr double kSubnormalShare = 0.95;
constexpr uint64_t kFewBits = 16;  ///< magnitude patterns below have four bits or fewer

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

/// What an op read, as far as it is known.
struct Operand {
    double elements = 0;
    double zeros = 0;
    double absmax = 0;
    double absmin = 0;
    DType dtype = DType::Float32;
    bool gone = false;  ///< the op wrote over it: how many zeros it had is not known
    const TensorView* view = nullptr;
};

/// A product over many terms may be zero because they cancel.
bool sums(const std::string& op) {
    return one_of(op, {"mm", "bmm", "mv", "addmm", "baddbmm", "convolution", "convolution_backward"});
}
bool adds_first(const std::string& op) { return one_of(op, {"addmm", "baddbmm"}); }
bool casts(const std::string& op) { return one_of(op, {"_to_copy", "copy"}); }
bool powers(const std::string& op) { return one_of(op, {"square", "pow"}); }

/// As it was written before the op wrote over it.
std::optional<Operand> overwritten(const TensorView& output, const Lineage& lineage) {
    Lineage::Record before;
    if (!lineage.find(output.storage, before) || before.smallest == 0 || before.numel != output.numel ||
        before.dtype != output.dtype || before.largest >= value_classes(info(output.dtype)).smallest_nonfinite())
        return std::nullopt;
    Operand operand;
    operand.elements = double(output.numel);
    operand.absmax = magnitude_value(before.largest, before.dtype);
    operand.absmin = before.smallest == ~uint64_t(0) ? 0 : magnitude_value(before.smallest, before.dtype);
    operand.dtype = before.dtype;
    operand.gone = true;
    return operand;
}

std::optional<Operand> measured(const TensorView& input, const Scanner& scanner) {
    if ((input.flags & kScannable) == 0 || info(input.dtype).lanes != 1 || !scanner.measures(input))
        return std::nullopt;
    const Health health = scanner.health(input);
    if (health.finite != health.elements) return std::nullopt;
    Operand operand;
    operand.elements = double(health.elements);
    operand.zeros = double(health.zero);
    operand.absmax = health.absmax;
    operand.absmin = health.absmin;
    operand.dtype = input.dtype;
    operand.view = &input;
    return operand;
}

/// All operands in order, Python numbers among them; nothing when one of them is not known. `all` is the op, `event`
/// its member that makes `output`.
std::optional<std::vector<Operand>> operands_of(const OpEvent& all, int32_t index, const OpEvent& event,
                                                const std::string& op, const TensorView& output, const Scanner& scanner,
                                                const Lineage& lineage) {
    std::vector<Operand> operands;
    const auto add = [&](const std::optional<Operand>& operand) {
        if (operand) operands.push_back(*operand);
        return operand.has_value();
    };
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        const bool own = input.storage == output.storage;
        if (own && op == "copy") continue;
        if (!add(own ? overwritten(output, lineage) : measured(input, scanner))) return std::nullopt;
    }
    if (!one_of(op, {"mul", "div"})) return operands;
    // A factor for the whole list: one tensor behind the lists, or a number.
    if (operands.size() == 1 && &event != &all && all.output_count > 1 && all.input_count % all.output_count == 1 &&
        !add(measured(all.inputs[all.input_count - 1], scanner)))
        return std::nullopt;
    if (operands.size() == 1 && all.scalar_count > 0) {
        const bool each = all.scalar_count == all.output_count;
        if (!each && all.scalar_count != 1) return std::nullopt;
        Operand factor;
        factor.elements = 1;
        factor.absmax = factor.absmin = std::fabs(all.scalars[each ? index : 0]);
        operands.push_back(factor);
    }
    return operands;
}

/// Terms that one result of a product adds up, at most.
double terms(const std::string& op, const std::vector<Operand>& operands) {
    const size_t first = adds_first(op) ? 1 : 0;
    if (op == "convolution" && operands[1].view != nullptr && operands[1].view->ndim > 0)
        return operands[1].elements / std::max<double>(double(operands[1].view->sizes[0]), 1);
    if (op == "convolution_backward") return std::max(operands[0].elements, operands[2].elements);
    const TensorView* a = operands[first].view;
    return a != nullptr && a->ndim > 0 ? double(a->sizes[a->ndim - 1]) : 1;
}

/// Largest magnitude that a result can have; nothing when the operands are not what the op takes.
std::optional<double> bound_of(const std::string& op, const OpEvent& event, const std::vector<Operand>& operands) {
    const auto top = [&](size_t i) { return operands[i].absmax; };
    if (casts(op)) return operands.size() == 1 ? std::optional(top(0)) : std::nullopt;
    if (powers(op)) {
        const double exponent = op == "square" ? 2 : event.scalar_count > 0 ? event.scalars[0] : 0;
        if (operands.size() != 1 || exponent < 1) return std::nullopt;
        return std::pow(top(0), exponent);
    }
    if (op == "convolution_backward")  // of the result's gradient, the operand and the weight
        return operands.size() == 3 ? std::optional(top(0) * std::max(top(1), top(2)) * terms(op, operands))
                                    : std::nullopt;
    if (adds_first(op)) {
        if (operands.size() != 3) return std::nullopt;
        return top(0) + top(1) * top(2) * terms(op, operands);
    }
    if (operands.size() == 3 && op == "convolution") return top(2) + top(0) * top(1) * terms(op, operands);
    if (operands.size() != 2) return std::nullopt;
    if (op == "div") return operands[1].absmin > 0 ? top(0) / operands[1].absmin : INFINITY;
    return top(0) * top(1) * (sums(op) ? terms(op, operands) : 1);
}

std::string limits(double bound, DType dtype, double least) {
    return "the largest is at most " + number(bound) + ", and " + info(dtype).name + " holds nothing between 0 and " +
           number(least);
}

/// Even the largest result has few bits left, though the operands had all of theirs.
std::optional<std::string> subnormal_share(const std::string& op, const TensorView& output, const Health& result,
                                           const std::vector<Operand>& operands) {
    const DTypeInfo& type = info(output.dtype);
    const uint64_t normal = value_classes(type).smallest_normal;
    const double least = magnitude_value(1, output.dtype);
    const double few = double(std::min(kFewBits, std::max<uint64_t>(normal / 4, 2))) * least;
    const double values = double(result.elements - result.zero);
    if (sums(op) || values < 8 || result.absmax >= few || double(result.subnormal) < kSubnormalShare * values)
        return std::nullopt;
    for (const Operand& operand : operands) {
        const DTypeInfo& read = info(operand.dtype);
        if (operand.absmax < magnitude_value(value_classes(read).smallest_normal, operand.dtype)) return std::nullopt;
    }
    const auto pattern = static_cast<uint64_t>(result.absmax / least);
    return std::to_string(result.subnormal) + " of " + std::to_string(static_cast<int64_t>(values)) + " results of " +
           op + " that are not zero are subnormal: the largest, " + number(result.absmax) + ", has " +
           std::to_string(std::bit_width(pattern)) + " of the " + std::to_string(type.mantissa_bits + 1) + " bits of " +
           type.name;
}

}  // namespace

std::optional<std::string> flushed_share(const OpEvent& all, int32_t index, const Scanner& scanner,
                                         const Lineage& lineage) {
    const TensorView& output = all.outputs[index];
    if (info(output.dtype).lane_bytes >= 4 || info(output.dtype).lanes != 1 || !scanner.measures(output))
        return std::nullopt;
    const ListMember member(all, index);
    const OpEvent& event = member.event();
    const std::string op = plain_op_name(event.op->name);
    if (!casts(op) && !powers(op) && !sums(op) && !one_of(op, {"mul", "div"})) return std::nullopt;
    const auto operands = operands_of(all, index, event, op, output, scanner, lineage);
    if (!operands || operands->empty() || operands->size() > 3) return std::nullopt;
    const Health result = scanner.health(output);
    double zeros = 0;  // results that an operand's zero explains
    bool gone = false;
    for (size_t i = 0; i < operands->size(); ++i) {
        const Operand& operand = (*operands)[i];
        gone = gone || operand.gone;
        const bool term = (adds_first(op) && i == 0) || (op == "convolution" && i == 2);
        if (operand.absmax == 0 && !term) return std::nullopt;
        if (term && operand.absmax > 0) return std::nullopt;
        const double factor = operand.elements > 0 ? double(result.elements) / operand.elements : 0;
        if (i == 0 || op != "div") zeros += operand.zeros * factor;
    }
    const std::optional<double> bound = bound_of(op, event, *operands);
    if (!bound || !(*bound > 0)) return std::nullopt;
    const double least = magnitude_value(1, output.dtype);
    if (sums(op) || gone) {
        if (result.zero != result.elements || *bound >= least / 2) return std::nullopt;
        zeros = 0;
    }
    const double expected = double(result.elements) - zeros;  // should not be zero
    const double flushed = double(result.zero) - zeros;
    if (expected <= 0) return std::nullopt;
    if (flushed < kFlushedShare * expected) return subnormal_share(op, output, result, *operands);
    return std::to_string(static_cast<int64_t>(flushed)) + " of " + std::to_string(static_cast<int64_t>(expected)) +
           " results of " + op + " that should not be zero are: " + limits(*bound, output.dtype, least);
}

}  // namespace numsan
