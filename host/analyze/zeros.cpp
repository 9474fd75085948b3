#include "host/analyze/zeros.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "host/analyze/measure.h"
#include "host/analyze/mechanism.h"

namespace numsan {
namespace {

constexpr double kFlushedShare = 0.5;
constexpr double kLostShare = 0.95;

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

double smallest_subnormal(DType dtype) { return magnitude_value(1, dtype); }

bool contiguous(const TensorView& t) {
    int64_t expected = 1;
    for (int d = t.ndim - 1; d >= 0; --d) {
        if (t.sizes[d] != 1 && t.strides[d] != expected) return false;
        expected *= t.sizes[d];
    }
    return true;
}

/// Real element of a contiguous tensor.
double element(const TensorView& t, int64_t index) {
    const DTypeInfo& type = info(t.dtype);
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(t.data) + index * type.lane_bytes, type.lane_bytes);
    const double magnitude = magnitude_value(bits & type.magnitude_mask(), t.dtype);
    return (bits & type.sign_mask()) != 0 ? -magnitude : magnitude;
}

/// Half of the distance to the next representable number: what is added and smaller leaves the value as it is.
double half_place(double value, DType dtype) {
    const DTypeInfo& type = info(dtype);
    const int lowest = 1 - static_cast<int>(type.bias);
    const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
    return std::ldexp(0.5, exponent - type.mantissa_bits);
}

}  // namespace

bool mutes(const OpEvent& event, const Birth& overflow) {
    if (std::strcmp(overflow.mechanism, "OVF") != 0 && std::strcmp(overflow.mechanism, "HYPER") != 0) return false;
    const std::string op = plain_op_name(event.op->name);
    const bool exponential = one_of(overflow.features.op, {"exp", "exp2", "expm1"});
    if (op == "rsqrt") return !exponential;
    if (!one_of(op, {"div", "reciprocal"})) return false;
    if (overflow.shrunk) return !exponential;
    const double would_be = overflow.features.result_estimate;
    return would_be > 0 &&
           would_be <= magnitude_value(info(overflow.features.dtype).exponent_mask() - 1, overflow.features.dtype);
}

bool multiplies(const OpEvent& event) {
    return one_of(plain_op_name(event.op->name), {"mul", "mm", "bmm", "addmm", "mv", "baddbmm", "convolution"});
}

bool hands_zeros_on(const OpEvent& event) {
    return event.op->op_class == OpClass::Preserving ||
           one_of(plain_op_name(event.op->name), {"clamp", "clamp_max", "clamp_min", "minimum", "_to_copy", "copy",
                                                  "clone", "neg", "abs", "sqrt", "pow", "expand"});
}

std::optional<std::string> flushed_share(const OpEvent& event, const TensorView& output, const Scanner& scanner) {
    if (info(output.dtype).lane_bytes >= 4) return std::nullopt;
    const std::string op = plain_op_name(event.op->name);
    const bool unary = one_of(op, {"_to_copy", "copy", "square", "pow"});
    if (!unary && !one_of(op, {"mul", "div", "mm", "bmm"})) return std::nullopt;
    std::vector<const TensorView*> operands;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) != 0 && input.storage != output.storage) operands.push_back(&input);
    }
    if (operands.empty() || operands.size() > 2) return std::nullopt;
    const Health result = scanner.health(output);
    double zeros = 0;  // results that an operand's zero explains
    double bound = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
        const Health health = scanner.health(*operands[i]);
        if (health.finite != health.elements || health.absmax == 0) return std::nullopt;
        const double factor = health.elements > 0 ? double(result.elements) / double(health.elements) : 0;
        if (i == 0 || op != "div") zeros += double(health.zero) * factor;
        if (op == "div") {
            bound = i == 0 ? health.absmax : health.absmin > 0 ? bound / health.absmin : INFINITY;
        } else {
            bound *= health.absmax;
        }
    }
    if (op == "square" || (op == "pow" && event.scalar_count > 0 && event.scalars[0] == 2)) bound *= bound;
    const double least = smallest_subnormal(output.dtype);
    if (one_of(op, {"mm", "bmm"})) {
        bound *= operands[0]->ndim > 0 ? double(operands[0]->sizes[operands[0]->ndim - 1]) : 1;
        if (result.zero != result.elements || bound >= least / 2) return std::nullopt;
        zeros = 0;
    }
    const double expected = double(result.elements) - zeros;  // should not be zero
    const double flushed = double(result.zero) - zeros;
    if (expected <= 0 || flushed < kFlushedShare * expected) return std::nullopt;
    return std::to_string(static_cast<int64_t>(flushed)) + " of " + std::to_string(static_cast<int64_t>(expected)) +
           " results of " + op + " that should not be zero are: the largest is at most " + number(bound) + ", and " +
           info(output.dtype).name + " holds nothing between 0 and " + number(least);
}

std::optional<std::string> lost_updates(const OpEvent& event, int32_t index) {
    const TensorView& weight = event.outputs[index];
    if (info(weight.dtype).lane_bytes >= 4 || info(weight.dtype).lanes != 1 || !contiguous(weight)) return std::nullopt;
    if (weight.device != Device::Cpu) return std::nullopt;  // elements are read here, not by a scanner
    const std::string op = plain_op_name(event.op->name);
    const int operands = one_of(op, {"add", "sub"}) ? 1 : op == "addcdiv" ? 2 : 0;
    if (operands == 0) return std::nullopt;
    int32_t self = -1;
    for (int32_t i = 0; i < event.input_count && self < 0; ++i) {
        if (event.inputs[i].impl == weight.impl) self = i;
    }
    const int32_t apart = event.output_count;
    if (self < 0 || self + operands * apart >= event.input_count) return std::nullopt;
    const TensorView& first = event.inputs[self + apart];
    const TensorView& second = event.inputs[self + operands * apart];
    for (const TensorView* t : {&first, &second}) {
        const bool usable =
            (t->flags & kScannable) != 0 && t->numel == weight.numel && info(t->dtype).lanes == 1 && contiguous(*t);
        if (!usable) return std::nullopt;
    }
    const double factor = event.scalar_count > 0 ? event.scalars[event.scalar_count - 1] : 1;
    constexpr int64_t kSampled = 4096;
    const int64_t stride = std::max<int64_t>(weight.numel / kSampled, 1);
    int64_t updates = 0;
    int64_t lost = 0;
    double largest = 0;
    for (int64_t i = 0; i < weight.numel; i += stride) {
        double update = factor * element(first, i);
        if (operands == 2) update /= element(second, i);
        if (!(std::fabs(update) > 0) || !std::isfinite(update)) continue;
        ++updates;
        largest = std::max(largest, std::fabs(update));
        if (std::fabs(update) < half_place(element(weight, i), weight.dtype)) ++lost;
    }
    if (updates < 8 || double(lost) < kLostShare * double(updates)) return std::nullopt;
    return std::to_string(lost) + " of " + std::to_string(updates) +
           " updates looked at are below half of the last place of the " + info(weight.dtype).name +
           " weight they are added to, the largest " + number(largest) + ": they change nothing";
}

}  // namespace numsan
