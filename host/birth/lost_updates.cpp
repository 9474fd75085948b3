#include "host/birth/lost_updates.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "host/base/coldest.h"
#include "host/base/thresholds.h"
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

/// Updates that were looked at, and those that changed nothing.
class Count {
  public:
    void add(double change, bool is_lost) {
        if (change == 0) return;
        ++updates_;
        lost_ += is_lost;
        largest_ = std::max(largest_, std::fabs(change));
    }

    std::optional<LostShare> share(const TensorView& weight) const {
        if (updates_ < 8) return std::nullopt;
        if (double(lost_) < kLostShare * double(updates_)) return LostShare{{}, largest_};
        return LostShare{std::to_string(lost_) + " of " + std::to_string(updates_) +
                             " updates looked at are below half of the last place of the " + info(weight.dtype).name +
                             (is_parameter(weight) ? " weight" : " average") + " they are added to, the largest " +
                             number(largest_, 3) + ": they change nothing",
                         largest_};
    }

  private:
    int64_t updates_ = 0;
    int64_t lost_ = 0;
    double largest_ = 0;
};

bool is_power_of_two(int64_t step) { return (step & (step - 1)) == 0; }

bool is_narrow(const TensorView& weight) {
    // Elements are read here, not by a scanner.
    return info(weight.dtype).is_narrow() && info(weight.dtype).lanes == 1 && weight.device == Device::Cpu;
}

/// What a copy wrote into `weight`, of a type with more places; null for other ops.
const TensorView* rounded_from(const OpEvent& event, const TensorView& weight) {
    if (event.op->op_class != OpClass::Preserving || !is_parameter(weight)) return nullptr;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (input.storage != weight.storage && beside(input, weight) &&
            info(input.dtype).mantissa_bits > info(weight.dtype).mantissa_bits)
            return &input;
    }
    return nullptr;
}

}  // namespace

std::optional<LostShare> lost_updates(const OpEvent& event, int32_t index) {
    const TensorView& weight = event.outputs[index];
    if (!is_narrow(weight)) return std::nullopt;
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
    Count count;
    for (int64_t i = 0; i < weight.numel; i += stride) {
        const double now = element(weight, i);
        const double change = update->at(i, now);
        if (std::isfinite(change)) count.add(change, std::fabs(change) < half_place(now, weight.dtype));
    }
    return count.share(weight);
}

std::optional<LostShare> LostUpdates::of_copy(const TensorView& weight, const TensorView& source, OpSeq seq) {
    constexpr int64_t kSampled = 512;
    constexpr size_t kMostWeights = 1024;
    const int64_t stride = std::max<int64_t>((weight.numel + kSampled - 1) / kSampled, 1);
    const auto known = copies_.find(weight.impl);
    if (known == copies_.end() && copies_.size() >= kMostWeights)
        forget_coldest(copies_, [](const Copy& copy) { return copy.seq; });
    Copy& kept = known != copies_.end() ? known->second : copies_[weight.impl];
    const bool nothing_between = kept.seq != OpSeq::None && lineage_.written_at(weight.storage) == kept.seq &&
                                 kept.values.size() == static_cast<size_t>((weight.numel + stride - 1) / stride);
    Count count;
    std::vector<float> now;
    now.reserve(static_cast<size_t>(kSampled));
    for (int64_t i = 0; i < weight.numel; i += stride) {
        now.push_back(static_cast<float>(element(weight, i)));
        if (!nothing_between) continue;
        const float before = kept.values[now.size() - 1];
        count.add(element(source, i) - double(before), now.back() == before);
    }
    kept = {seq, std::move(now)};
    return count.share(weight);
}

std::optional<std::string> LostUpdates::seen_again(const OpEvent& event, int32_t index, int64_t step, OpSeq seq) {
    constexpr size_t kMostSights = 1 << 14;
    const TensorView& weight = event.outputs[index];
    const bool due = step > 0 && is_power_of_two(step);
    const bool after = step > 1 && is_power_of_two(step - 1);
    if ((!due && !after) || !is_narrow(weight)) return std::nullopt;
    std::optional<LostShare> share;
    if (const TensorView* source = rounded_from(event, weight); source != nullptr) {
        share = of_copy(weight, *source, seq);
        if (!after) return std::nullopt;
    } else if (due) {
        share = lost_updates(event, index);
    }
    if (!share) return std::nullopt;
    if (sights_.size() >= kMostSights && sights_.count(weight.impl) == 0)
        forget_coldest(sights_, [](const Sight& seen) { return seen.seq; });
    Sight& sight = sights_[weight.impl];
    sight.seq = seq;
    sight.earlier = std::max(sight.earlier, share->largest);
    if (share->evidence.empty()) return std::nullopt;
    if (share->largest * kFadedUpdates < sight.earlier) return std::nullopt;
    // What an average takes up grows as what it follows moves away from it.
    if (is_parameter(weight) && share->largest > kGrowingUpdates * sight.largest) sight.times = 0;
    sight.largest = share->largest;
    if (++sight.times != 2) return std::nullopt;
    return share->evidence;
}

}  // namespace numsan
