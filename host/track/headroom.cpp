#include "host/track/headroom.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"
#include "host/track/elements.h"

namespace numsan {
namespace {

constexpr int64_t kSampled = 4096;

bool is_cast(const OpTraits& op) { return op.form == Form::Cast; }
bool bounds(const OpTraits& op) {
    return is_clamp(op) || op.is({Form::Bounded, Form::Sigmoid, Form::Softmax, Form::Replace});
}

/// Ops whose results can be larger than what they read, by what they compute.
bool can_grow(const OpTraits& op) {
    return is_matrix_product(op) || is_exponential(op) ||
           op.is({Form::Cast, Form::Convolve, Form::Multiply, Form::Square, Form::Power, Form::Product, Form::Add,
                  Form::Subtract, Form::SubtractFrom, Form::Sum, Form::Norm});
}

/// The program chose the factor, and so how large the results are: a number, or one for many values.
bool is_scaled(const OpEvent& event, const TensorView& output) {
    int32_t whole = 0;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        whole += (input.flags & kNumber) == 0 && input.numel == output.numel;
    }
    return whole < 2;
}

/// Of what `storage` was computed from, the nearest op that is more than a copy: decides.
template <class Decide>
void behind(const void* storage, OpSeq seq, const Lineage& lineage, Decide&& decide) {
    lineage.ancestors(storage, seq, [&](const Lineage::Record& record, int distance) {
        const OpTraits& op = traits_of(record.op->name);
        if (distance <= kNearUpstream && hands_on(op, record.op->op_class)) return true;
        if (distance <= kNearUpstream) decide(record, op);
        return false;
    });
}

/// The op multiplied or divided by a number, or by one for many values.
bool is_scaled(const Lineage::Record& record, const Lineage& lineage) {
    if (!scales(traits_of(record.op->name))) return false;
    Lineage::Record factor;
    bool scaled = record.input_count < 2;
    for (uint8_t i = 0; i < record.input_count; ++i)
        scaled = scaled || (lineage.find(record.inputs[i], factor) && factor.numel < record.numel);
    return scaled;
}

/// The program set how large these values may be.
bool deliberate(const TensorView& operand, OpSeq seq, const Lineage& lineage, bool to_bytes) {
    bool found = false;
    behind(operand.storage, seq, lineage, [&](const Lineage::Record& record, const OpTraits& op) {
        // A cast into eight bits has a scale of some shape, whose largest value then is the type's.
        const bool scaled = is_scaled(record, lineage) || (scales(op) && to_bytes);
        found = found || scaled || bounds(op) || record.op->op_class == OpClass::Constant;
    });
    return found;
}

/// A mask, written down with a number that was meant to be large: what is not zero in it is all of one magnitude, or it
/// was filled in.
bool is_chosen(const Lineage::Record& record) {
    const OpTraits& op = traits_of(record.op->name);
    if (is_clamp(op)) return false;  // what it read says
    return record.largest == record.smallest || record.op->op_class == OpClass::Constant ||
           op.is({Form::Fill, Form::FillPlaces, Form::Choose});
}

/// Largest magnitude of an operand, by a pass over it or as it was written; nothing when neither is known.
std::optional<double> magnitude_of(const TensorView& operand, const Scanner& scanner, const Lineage& lineage) {
    if ((operand.flags & kScannable) != 0 && scanner.measures(operand)) {
        const Range range = scanner.range(operand);
        if (range.suspicious) return std::nullopt;
        return magnitude_value(range.max_magnitude, operand.dtype);
    }
    Lineage::Record written;
    if (!lineage.find(operand.storage, written) || written.smallest == 0) return std::nullopt;
    return magnitude_value(written.largest, written.dtype);
}

}  // namespace

uint64_t near_overflow_pattern(DType dtype, double share) {
    const DTypeInfo& type = info(dtype);
    if (!type.is_narrow() || type.lanes != 1 || share <= 0) return ~uint64_t(0);
    // Patterns order as values do.
    uint64_t low = 0, high = largest_pattern(dtype);
    const double least = share * largest_value(dtype);
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (magnitude_value(middle, dtype) > least) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

std::optional<std::string> close_to_largest(const OpEvent& event, int32_t index, OpSeq seq, double share,
                                            const Scanner& scanner, const Lineage& lineage) {
    const TensorView& output = event.outputs[index];
    const OpTraits& op = traits_of(event);
    if (output.numel < 2 || !can_grow(op) || is_over_lists(event)) return std::nullopt;
    if (event.op->op_class != OpClass::Other && !is_cast(op)) return std::nullopt;
    const double top = magnitude_value(scanner.range(output).max_magnitude, output.dtype);
    const double limit = largest_value(output.dtype);
    if (!(top > share * limit) || !(top <= limit)) return std::nullopt;
    if (scales(op) && is_scaled(event, output)) return std::nullopt;
    bool read = false;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (input.storage == output.storage) continue;  // what it was is gone
        if ((input.flags & (kScannable | kLater)) == 0) continue;
        if (is_cast(op) && info(input.dtype).lane_bytes <= info(output.dtype).lane_bytes) return std::nullopt;
        const std::optional<double> magnitude = magnitude_of(input, scanner, lineage);
        if (!magnitude || (!is_cast(op) && *magnitude > share * limit)) return std::nullopt;
        if (deliberate(input, seq, lineage, info(output.dtype).lane_bytes == 1)) return std::nullopt;
        read = true;
    }
    if (!read) return std::nullopt;
    return "the largest result of " + std::string(plain_op_name(event.op->name)) + " is " + number(top, 6) + ", " +
           fixed(100 * top / limit, 0) + " % of the largest " + info(output.dtype).name + ", " + number(limit, 6) +
           ", and what it read was not bounded";
}

std::optional<Saturation> saturated(const OpEvent& event, int32_t index, OpSeq seq, const Lineage& lineage) {
    const TensorView& output = event.outputs[index];
    const OpTraits& op = traits_of(event);
    if (!is_cast(op) || output.device != Device::Cpu || output.numel < 8) return std::nullopt;
    const double limit = largest_value(output.dtype);
    // Half a place beyond the largest number still rounds to it.
    const double beyond = limit + std::ldexp(1, std::ilogb(limit) - info(output.dtype).mantissa_bits - 1);
    double uncut = 0;  // largest magnitude before the values were cut
    bool chosen = false;
    bool scaled = false;
    const auto look = [&](const Lineage::Record& before) {
        chosen = chosen || is_chosen(before);
        scaled = scaled || is_scaled(before, lineage);
        uncut = std::max(uncut, magnitude_value(before.largest, before.dtype));
    };
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (input.storage == output.storage || info(input.dtype).lane_bytes <= info(output.dtype).lane_bytes) continue;
        behind(input.storage, seq, lineage, [&](const Lineage::Record& record, const OpTraits& by) {
            Lineage::Record read;
            for (uint8_t k = 0; is_clamp(by) && k < record.input_count; ++k) {
                if (lineage.find(record.inputs[k], read) && read.smallest != 0) look(read);
            }
        });
        Lineage::Record written;
        if (lineage.find(input.storage, written) && written.smallest != 0) look(written);
    }
    if (chosen || !(uncut > beyond) || !std::isfinite(uncut)) return std::nullopt;
    const int64_t stride = std::max<int64_t>(output.numel / kSampled, 1);
    const uint64_t full = largest_pattern(output.dtype);
    int64_t looked = 0;
    int64_t cut = 0;
    for (int64_t i = 0; i < output.numel; i += stride) {
        ++looked;
        cut += element_magnitude(output, i) == full;
    }
    if (double(cut) < kCutShare * double(looked)) return std::nullopt;
    return Saturation{std::to_string(cut) + " of " + std::to_string(looked) + " values looked at are " +
                          number(limit, 6) + ", the largest " + info(output.dtype).name +
                          ": before they were cut to it they went up to " + number(uncut, 6),
                      scaled};
}

}  // namespace numsan
