#include "host/analyze/headroom.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "host/analyze/elements.h"
#include "host/analyze/measure.h"
#include "host/analyze/mechanism.h"

namespace numsan {
namespace {

constexpr double kCutShare = 0.25;
constexpr int64_t kSampled = 4096;
constexpr int kNear = 6;  ///< ops that are followed upstream

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

uint64_t largest_pattern(DType dtype) { return value_classes(info(dtype)).smallest_nonfinite() - 1; }
double largest(DType dtype) { return magnitude_value(largest_pattern(dtype), dtype); }

bool is_cast(const std::string& op) { return one_of(op, {"_to_copy", "copy"}); }
bool scales(const std::string& op) { return one_of(op, {"mul", "div"}); }
bool clamps(const std::string& op) {
    return one_of(op, {"clamp", "clamp_max", "clamp_min", "minimum", "maximum", "hardtanh"});
}
bool bounds(const std::string& op) {
    return clamps(op) || one_of(op, {"tanh", "sigmoid", "_softmax", "sin", "cos", "nan_to_num", "round", "floor"});
}
bool hands_on(const Lineage::Record& record, const std::string& op) {
    return record.op->op_class == OpClass::Preserving || is_cast(op) || one_of(op, {"clone", "neg", "abs"});
}

/// Ops whose results can be larger than what they read, by what they compute.
bool can_grow(const std::string& op) {
    return is_cast(op) ||
           one_of(op, {"mm", "bmm", "mv", "addmm", "baddbmm", "convolution", "mul", "square", "pow", "add", "sub",
                       "sum", "cumsum", "prod", "cumprod", "exp", "exp2", "linalg_vector_norm"});
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
void behind(const void* storage, int64_t seq, const Lineage& lineage, Decide&& decide) {
    lineage.ancestors(storage, seq, [&](const Lineage::Record& record, int distance) {
        const std::string op = plain_op_name(record.op->name);
        if (distance <= kNear && hands_on(record, op)) return true;
        if (distance <= kNear) decide(record, op);
        return false;
    });
}

/// Somebody set how large these values may be.
bool deliberate(const TensorView& operand, int64_t seq, const Lineage& lineage, bool to_bytes) {
    bool found = false;
    behind(operand.storage, seq, lineage, [&](const Lineage::Record& record, const std::string& op) {
        bool scaled = false;
        if (scales(op)) {
            Lineage::Record factor;
            // Into eight bits nobody casts without a scale of some shape, whose largest value then is the type's.
            scaled = record.input_count < 2 || to_bytes;
            for (uint8_t i = 0; i < record.input_count; ++i)
                scaled = scaled || (lineage.find(record.inputs[i], factor) && factor.numel < record.numel);
        }
        found = found || scaled || bounds(op) || record.op->op_class == OpClass::Constant;
    });
    return found;
}

/// A mask, written down with a number that was meant to be large: what is not zero in it is all of one magnitude, or it
/// was filled in.
bool is_chosen(const Lineage::Record& record) {
    const std::string op = plain_op_name(record.op->name);
    if (clamps(op)) return false;  // what it read says
    return record.largest == record.smallest || record.op->op_class == OpClass::Constant ||
           one_of(op, {"masked_fill", "where", "full", "full_like", "fill"});
}

/// Largest magnitude of an operand, by a pass over it or as it was written; nothing when neither tells.
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

uint64_t crowded_pattern(DType dtype, double share) {
    const DTypeInfo& type = info(dtype);
    if (type.lane_bytes >= 4 || type.lanes != 1 || share <= 0) return ~uint64_t(0);
    // Patterns order as values do.
    uint64_t low = 0, high = largest_pattern(dtype);
    const double least = share * largest(dtype);
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

std::optional<std::string> close_to_largest(const OpEvent& event, int32_t index, int64_t seq, double share,
                                            const Scanner& scanner, const Lineage& lineage) {
    const TensorView& output = event.outputs[index];
    const std::string op = plain_op_name(event.op->name);
    if (output.numel < 2 || !can_grow(op) || is_over_lists(event)) return std::nullopt;
    if (event.op->op_class != OpClass::Other && !is_cast(op)) return std::nullopt;
    const double top = magnitude_value(scanner.range(output).max_magnitude, output.dtype);
    const double limit = largest(output.dtype);
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
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.0f", 100 * top / limit);
    return "the largest result of " + op + " is " + number(top) + ", " + percent + " % of the largest " +
           info(output.dtype).name + ", " + number(limit) + ", and what it read was not bounded";
}

std::optional<std::string> saturated(const OpEvent& event, int32_t index, int64_t seq, const Lineage& lineage) {
    const TensorView& output = event.outputs[index];
    const std::string op = plain_op_name(event.op->name);
    if (!is_cast(op) || output.device != Device::Cpu || output.numel < 8) return std::nullopt;
    const double limit = largest(output.dtype);
    // Half a place beyond the largest number still rounds to it.
    const double beyond = limit + std::ldexp(1, std::ilogb(limit) - info(output.dtype).mantissa_bits - 1);
    double uncut = 0;  // largest magnitude before the values were cut
    bool chosen = false;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (input.storage == output.storage || info(input.dtype).lane_bytes <= info(output.dtype).lane_bytes) continue;
        behind(input.storage, seq, lineage, [&](const Lineage::Record& record, const std::string& by) {
            Lineage::Record read;
            for (uint8_t k = 0; clamps(by) && k < record.input_count; ++k) {
                if (!lineage.find(record.inputs[k], read) || read.smallest == 0) continue;
                chosen = chosen || is_chosen(read);
                uncut = std::max(uncut, magnitude_value(read.largest, read.dtype));
            }
        });
        Lineage::Record written;
        if (lineage.find(input.storage, written) && written.smallest != 0) {
            chosen = chosen || is_chosen(written);
            uncut = std::max(uncut, magnitude_value(written.largest, written.dtype));
        }
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
    return std::to_string(cut) + " of " + std::to_string(looked) + " values looked at are " + number(limit) +
           ", the largest " + info(output.dtype).name + ": before they were cut to it they went up to " + number(uncut);
}

}  // namespace numsan
