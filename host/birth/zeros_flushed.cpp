// What was too small for its type: results that should not be zero and are, or that have hardly a bit left.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/birth/zeros.h"
#include "host/cause/measure.h"
#include "host/log/format.h"
#include "host/ops/effect.h"
#include "host/track/list_member.h"

namespace numsan {
namespace {

/// What an op read, as far as it is known.
struct Read : Operand {
    DType dtype = DType::Float32;
    bool gone = false;  ///< the op wrote over it: how many zeros it had is not known
};

/// As it was written before the op wrote over it.
std::optional<Read> overwritten(const TensorView& output, const Lineage& lineage) {
    Lineage::Record before;
    if (!lineage.find(output.storage, before) || before.smallest == 0 || before.numel != output.numel ||
        before.dtype != output.dtype || before.largest >= value_classes(info(output.dtype)).smallest_nonfinite())
        return std::nullopt;
    Read operand;
    operand.health.elements = output.numel;
    operand.health.absmax = magnitude_value(before.largest, before.dtype);
    operand.health.absmin = before.smallest == ~uint64_t(0) ? 0 : magnitude_value(before.smallest, before.dtype);
    operand.dtype = before.dtype;
    operand.gone = true;
    return operand;
}

std::optional<Read> measured(const TensorView& input, const Scanner& scanner) {
    if ((input.flags & kScannable) == 0 || info(input.dtype).lanes != 1 || !scanner.measures(input))
        return std::nullopt;
    const Health health = scanner.health(input);
    if (health.finite != health.elements) return std::nullopt;
    Read operand;
    operand.health = health;
    operand.shape = {input.sizes, static_cast<size_t>(input.ndim)};
    operand.dtype = input.dtype;
    return operand;
}

/// All operands in order, Python numbers among them; nothing when one of them is not known. `all` is the op, `event`
/// its member that makes `output`.
std::optional<std::vector<Read>> operands_of(const OpEvent& all, int32_t index, const OpEvent& event,
                                             const OpTraits& op, const TensorView& output, const Scanner& scanner,
                                             const Lineage& lineage) {
    std::vector<Read> operands;
    const auto add = [&](const std::optional<Read>& operand) {
        if (operand) operands.push_back(*operand);
        return operand.has_value();
    };
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        const bool own = input.storage == output.storage;
        if (own && op.form == Form::Cast) continue;
        if (!add(own ? overwritten(output, lineage) : measured(input, scanner))) return std::nullopt;
    }
    if (!op.is({Form::Multiply, Form::Divide})) return operands;
    // A factor for the whole list: one tensor behind the lists, or a number.
    if (operands.size() == 1 && &event != &all && all.output_count > 1 && all.input_count % all.output_count == 1 &&
        !add(measured(all.inputs[all.input_count - 1], scanner)))
        return std::nullopt;
    if (operands.size() == 1 && all.scalar_count > 0) {
        const bool each = all.scalar_count == all.output_count;
        if (!each && all.scalar_count != 1) return std::nullopt;
        Read factor;
        factor.health.elements = 1;
        factor.health.absmax = factor.health.absmin = std::fabs(all.scalars[each ? index : 0]);
        operands.push_back(factor);
    }
    return operands;
}

std::string limits(double bound, DType dtype, double least) {
    return "the largest is at most " + number(bound, 3) + ", and " + info(dtype).name +
           " holds nothing between 0 and " + number(least, 3);
}

/// Even the largest result has few bits left, though the operands had all of theirs.
std::optional<std::string> subnormal_share(const OpInfo& op, const TensorView& output, const Health& result,
                                           const std::vector<Read>& operands) {
    const DTypeInfo& type = info(output.dtype);
    const uint64_t normal = value_classes(type).smallest_normal;
    const double least = magnitude_value(1, output.dtype);
    const double few = double(std::min(kFewBits, std::max<uint64_t>(normal / 4, 2))) * least;
    const double values = double(result.elements - result.zero);
    if (sums_products(traits_of(op.name)) || values < 8 || result.absmax >= few ||
        double(result.subnormal) < kSubnormalShare * values)
        return std::nullopt;
    for (const Read& operand : operands) {
        const DTypeInfo& read = info(operand.dtype);
        if (operand.health.absmax < magnitude_value(value_classes(read).smallest_normal, operand.dtype))
            return std::nullopt;
    }
    const auto pattern = static_cast<uint64_t>(result.absmax / least);
    return std::to_string(result.subnormal) + " of " + std::to_string(static_cast<int64_t>(values)) + " results of " +
           std::string(plain_op_name(op.name)) + " that are not zero are subnormal: the largest, " +
           number(result.absmax, 3) + ", has " + std::to_string(std::bit_width(pattern)) + " of the " +
           std::to_string(type.mantissa_bits + 1) + " bits of " + type.name;
}

}  // namespace

std::optional<std::string> flushed_share(const OpEvent& all, int32_t index, const Scanner& scanner,
                                         const Lineage& lineage) {
    const TensorView& output = all.outputs[index];
    if (!info(output.dtype).is_narrow() || info(output.dtype).lanes != 1 || !scanner.measures(output))
        return std::nullopt;
    const ListMember member(all, index);
    const OpEvent& event = member.event();
    const OpTraits& op = traits_of(event);
    if (!may_flush(op)) return std::nullopt;
    const auto operands = operands_of(all, index, event, op, output, scanner, lineage);
    if (!operands || operands->empty() || operands->size() > 3) return std::nullopt;
    const bool two = op.is({Form::Multiply, Form::Divide});
    if (two && operands->size() < 2) return std::nullopt;  // the other factor is not known
    const Health result = scanner.health(output);
    double zeros = 0;  // results that an operand's zero explains
    bool gone = false;
    for (size_t i = 0; i < operands->size(); ++i) {
        const Read& operand = (*operands)[i];
        gone = gone || operand.gone;
        const bool term = (op.form == Form::AddMatrixProduct && i == 0) || (op.form == Form::Convolve && i == 2);
        if (operand.health.absmax == 0 && !term) return std::nullopt;
        if (term && operand.health.absmax > 0) return std::nullopt;
        const double factor =
            operand.health.elements > 0 ? double(result.elements) / double(operand.health.elements) : 0;
        if (i == 0 || op.form != Form::Divide) zeros += double(operand.health.zero) * factor;
    }
    const std::vector<Operand> read(operands->begin(), operands->end());
    const std::span<const double> scalars{event.scalars, static_cast<size_t>(event.scalar_count)};
    const std::optional<double> bound = effect({op, read, scalars, output.dtype, output.numel}).bound;
    if (!bound || !(*bound > 0)) return std::nullopt;
    const double least = magnitude_value(1, output.dtype);
    if (sums_products(op) || gone) {
        if (result.zero != result.elements || *bound >= least / 2) return std::nullopt;
        zeros = 0;
    }
    const double expected = double(result.elements) - zeros;  // should not be zero
    const double flushed = double(result.zero) - zeros;
    if (expected <= 0) return std::nullopt;
    if (flushed < kFlushedShare * expected) return subnormal_share(*event.op, output, result, *operands);
    return std::to_string(static_cast<int64_t>(flushed)) + " of " + std::to_string(static_cast<int64_t>(expected)) +
           " results of " + std::string(plain_op_name(event.op->name)) +
           " that should not be zero are: " + limits(*bound, output.dtype, least);
}

}  // namespace numsan
