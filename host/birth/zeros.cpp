#include "host/birth/zeros.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/base/thresholds.h"
#include "host/cause/measure.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"
#include "host/track/elements.h"

namespace numsan {
namespace {

/// Half of the distance to the next representable number: what is added and smaller leaves the value as it is.
double half_place(double value, DType dtype) {
    const DTypeInfo& type = info(dtype);
    const int lowest = 1 - static_cast<int>(type.bias);
    const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
    return std::ldexp(0.5, exponent - type.mantissa_bits);
}

/// What an op adds to a weight, from what lies beside the weight after it.
struct Update {
    enum class Form { Linear, Quotient, Towards, Adam } form = Form::Linear;
    const TensorView* first = nullptr;
    const TensorView* second = nullptr;  ///< the first again where there is one operand alone
    double factor = 1;
    double decay = 0;  ///< Linear: of the weight, added to the first
    double scale = 1;  ///< Adam: of the second, before its root is taken
    double eps = 0;    ///< Adam: after it

    double at(int64_t i, double weight) const {
        const double a = element(*first, i);
        switch (form) {
            case Form::Quotient: return factor * a / element(*second, i);
            case Form::Towards: return factor * (a - weight);
            case Form::Adam: return factor * a / (std::sqrt(element(*second, i) * scale) + eps);
            default: return factor * (a + decay * weight);
        }
    }
};

bool beside(const TensorView& t, const TensorView& weight) {
    return (t.flags & kScannable) != 0 && t.numel == weight.numel && info(t.dtype).lanes == 1;
}

/// torch.optim.Adam, AdamW and SGD with fused=True: lists of weights, gradients, moments and steps, one after another,
/// then their settings. Decay apart from the gradient's changes no weight's place in its type: it is no update.
std::optional<Update> fused_update(const OpEvent& event, std::string_view op, int32_t self) {
    int32_t n = 0;
    while (n < event.input_count && is_parameter(event.inputs[n])) ++n;
    if (self >= n || event.op->overload[0] != '\0') return std::nullopt;
    const auto list = [&](int32_t k) { return &event.inputs[self + k * n]; };
    const int32_t lists = event.input_count / n;
    Update update;
    if (op == "_fused_sgd" && lists >= 2 && event.scalar_count >= 3) {
        const double momentum = event.scalars[1];
        if (momentum != 0 && lists < 3) return std::nullopt;
        update.first = update.second = list(momentum != 0 ? 2 : 1);
        update.factor = event.scalars[2];
        update.decay = momentum != 0 ? 0 : event.scalars[0];
        return update;
    }
    if ((op != "_fused_adam" && op != "_fused_adamw") || lists < 5 || event.scalar_count < 5) return std::nullopt;
    const TensorView& steps = *list(lists - 1);
    if ((steps.flags & kScannable) == 0 || steps.numel != 1) return std::nullopt;
    const double step = element(steps, 0);
    update.form = Update::Form::Adam;
    update.first = list(2);
    update.second = list(3);
    update.factor = event.scalars[0] / (1 - std::pow(event.scalars[1], step));
    update.scale = 1 / (1 - std::pow(event.scalars[2], step));
    update.eps = event.scalars[4];
    return update;
}

std::optional<Update> update_of(const OpEvent& event, int32_t self) {
    const std::string_view name = plain_op_name(event.op->name);
    if (name.rfind("_fused_", 0) == 0) return fused_update(event, name, self);
    const OpTraits& op = traits_of(event);
    Update update;
    const bool added = op.is({Form::Add, Form::Subtract, Form::Interpolate});
    const int operands = added ? 1 : op.form == Form::AddQuotient ? 2 : 0;
    const int32_t apart = event.output_count;
    if (operands == 0 || self + operands * apart >= event.input_count) return std::nullopt;
    update.first = &event.inputs[self + apart];
    update.second = &event.inputs[self + operands * apart];
    update.factor = event.scalar_count > 0 ? event.scalars[event.scalar_count - 1] : 1;
    if (operands == 2) update.form = Update::Form::Quotient;
    if (op.form == Form::Interpolate) {
        update.form = Update::Form::Towards;
        if (event.scalar_count == 0) return std::nullopt;  // weights of its own for every element
    }
    return update;
}

/// An average takes so small a share of what it follows that even a value twice as large would change nothing. With a
/// larger share it only follows in steps, which is no loss for an average.
bool keeps_nothing(const Update& update, DType dtype) {
    const bool average = update.form == Update::Form::Towards ||
                         (update.form == Update::Form::Linear && update.decay == 0 && update.factor > 0);
    return average && std::fabs(update.factor) <= std::ldexp(0.5, -static_cast<int>(info(dtype).mantissa_bits));
}

}  // namespace

bool mutes(const OpEvent& event, const Birth& overflow) {
    if (overflow.mechanism != Mechanism::OVF && overflow.mechanism != Mechanism::HYPER) return false;
    const OpTraits& op = traits_of(event);
    const bool exponential = is_exponential(traits_of(overflow.features.op));
    if (op.form == Form::InverseRoot) return !exponential;
    if (!op.is({Form::Divide, Form::Reciprocal})) return false;
    if (overflow.through_root) return !exponential;
    const double would_be = overflow.features.result_estimate;
    return would_be > 0 &&
           would_be <= magnitude_value(info(overflow.features.dtype).exponent_mask() - 1, overflow.features.dtype);
}

bool multiplies(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return is_matrix_product(op) || op.is({Form::Multiply, Form::Convolve});
}

bool hands_zeros_on(const OpEvent& event) {
    return event.op->op_class == OpClass::Preserving || traits_of(event).has(kKeepsZeros);
}

bool asks_for_zeros(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    const bool narrow = std::any_of(event.outputs, event.outputs + event.output_count,
                                    [](const TensorView& t) { return info(t.dtype).lane_bytes < 4; });
    if (narrow && may_flush(op)) return true;
    return op.is({Form::Divide, Form::InverseRoot, Form::Reciprocal}) || hands_zeros_on(event);
}

std::optional<std::string> lost_updates(const OpEvent& event, int32_t index) {
    const TensorView& weight = event.outputs[index];
    if (info(weight.dtype).lane_bytes >= 4 || info(weight.dtype).lanes != 1) return std::nullopt;
    if (weight.device != Device::Cpu) return std::nullopt;  // elements are read here, not by a scanner
    int32_t self = -1;
    for (int32_t i = 0; i < event.input_count && self < 0; ++i) {
        if (event.inputs[i].impl == weight.impl) self = i;
    }
    if (self < 0) return std::nullopt;
    const std::optional<Update> update = update_of(event, self);
    if (update && !is_parameter(weight) && !keeps_nothing(*update, weight.dtype)) return std::nullopt;
    if (!update || !beside(*update->first, weight) || !beside(*update->second, weight)) return std::nullopt;
    constexpr int64_t kSampled = 4096;
    const int64_t stride = std::max<int64_t>(weight.numel / kSampled, 1);
    int64_t updates = 0;
    int64_t lost = 0;
    double largest = 0;
    for (int64_t i = 0; i < weight.numel; i += stride) {
        const double now = element(weight, i);
        const double change = update->at(i, now);
        if (!(std::fabs(change) > 0) || !std::isfinite(change)) continue;
        ++updates;
        largest = std::max(largest, std::fabs(change));
        if (std::fabs(change) < half_place(now, weight.dtype)) ++lost;
    }
    if (updates < 8 || double(lost) < kLostShare * double(updates)) return std::nullopt;
    return std::to_string(lost) + " of " + std::to_string(updates) +
           " updates looked at are below half of the last place of the " + info(weight.dtype).name +
           (is_parameter(weight) ? " weight" : " average") + " they are added to, the largest " + number(largest, 3) +
           ": they change nothing";
}

}  // namespace numsan
