// What SignalGatherer measures of gradients and of the steps that an optimizer takes.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "host/diagnosis/gather/element_sample.h"
#include "host/diagnosis/gather/signal_gatherer.h"

namespace numsan {
namespace {

/// Of the thread's AccumulateGrad node: the parameter whose gradient it adds to.
thread_local int accumulating = -1;

/// Which of the op's numbers is the step's size; -1: none is.
int step_size_among(const OpEvent& event) {
    struct Row {
        std::string_view name;
        int index;
    };
    static constexpr Row kRows[] = {{"aten::add_", 0},
                                    {"aten::sub_", 0},
                                    {"aten::addcdiv_", 0},
                                    {"aten::_foreach_add_", 0},
                                    {"aten::_foreach_addcdiv_", 0},
                                    {"aten::_fused_adam_", 0},
                                    {"aten::_fused_adamw_", 0},
                                    {"aten::_fused_sgd_", 2}};
    for (const Row& row : kRows) {
        if (row.name == event.op->name && row.index < event.scalar_count) {
            // add_(update) has a factor of 1 that nobody chose
            return row.name.ends_with("_fused_sgd_") || std::fabs(event.scalars[row.index]) != 1 ? row.index : -1;
        }
    }
    return -1;
}

}  // namespace

void SignalGatherer::gradient(const NodeEvent& event, const OpContext& context) {
    accumulating = -1;
    growth_.gradient(event, context, lineage_);
    if (!is_sampled(context.step) || context.ignored || event.variable == nullptr) return;
    if (!has_elements(*event.variable)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const int at = find_or_add(*event.variable);
    if (at < 0) return;
    accumulating = at;
    const int sample = sample_of(context.step);
    sampled_ |= uint64_t(1) << sample;
    GatheredParameter& parameter = parameters_[static_cast<size_t>(at)];
    double size = NAN;
    bool moves = false;  // an element that update() looks at
    if (event.input_count > 0 && has_elements(event.inputs[0])) {
        const TensorView& gradient = event.inputs[0];
        size = sampled_size(gradient, kElements);
        const int64_t looks = std::min(gradient.numel, GatheredParameter::kElements);
        for (int64_t i = 0; i < looks && gradient.numel == parameter.numel && !moves; ++i)
            moves = finite_element(gradient, sample_position(i, gradient.numel, GatheredParameter::kElements)) != 0;
        Lineage::Record made;
        if (size == 0 && lineage_.find(gradient.storage, made) && made.was_read() && made.largest != 0)
            size = magnitude_value(made.largest, made.dtype) /
                   std::sqrt(static_cast<double>(std::max<int64_t>(made.numel, 1)));
    }
    parameter.gradient.set(sample, size);
    ++parameter.passes;
    parameter.was_used = std::exchange(parameter.used, false);  // unless it is added to one that is there
    parameter.moves = moves || (parameter.before_step == context.step && parameter.moves);
    double sum = 0;
    const int64_t count = std::min(parameter.numel, GatheredParameter::kElements);
    if (parameter.before_step == context.step) {  // memory may be written without any op: numpy
        for (int64_t i = 0; i < count && !parameter.changed; ++i)
            parameter.changed =
                parameter.before[i] !=
                finite_element(*event.variable, sample_position(i, parameter.numel, GatheredParameter::kElements));
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        double& before = parameter.before[i];
        const double now =
            finite_element(*event.variable, sample_position(i, parameter.numel, GatheredParameter::kElements));
        if (parameter.before_step >= 0 && now != before) parameter.changed = true;
        before = now;
        sum += now * now;
    }
    parameter.before_step = context.step;
    parameter.weight.set(sample, std::sqrt(sum / static_cast<double>(count)));
}

/// What autograd adds to is a gradient that was written before: whether the parameter was written since. Adding to it
/// is no fault yet: of two optimizers each clears its own gradients, but not those that the other's loss adds.
void SignalGatherer::look_at_accumulation(const OpEvent& event) {
    if (accumulating < 0 || static_cast<size_t>(accumulating) >= parameters_.size() || event.output_count != 1) return;
    GatheredParameter& parameter = parameters_[static_cast<size_t>(accumulating)];
    const TensorView& sum = event.outputs[0];
    Lineage::Record before;
    if ((sum.flags & kWritten) == 0 || sum.numel != parameter.numel || !lineage_.find(sum.storage, before)) return;
    if (before.was_read() && before.largest == 0) return;  // cleared
    parameter.used = parameter.was_used || was_stepped(parameter, sum.storage, before.seq);
}

/// Whether an optimizer has written the parameter since op `since` wrote its gradient. Others write it, too: a norm
/// that the forward pass keeps, noise, an average that is swapped in.
bool SignalGatherer::was_stepped(const GatheredParameter& parameter, const void* gradient, OpSeq since) const {
    if (lineage_.written_at(parameter.storage) < since) return false;  // equal: a fused op writes both
    const OpSeq stepped = last_in_optimizer_.load(std::memory_order_relaxed);
    if (stepped != OpSeq::None) return stepped >= since;
    constexpr int kOpsOfAStep = 8;  // of one written by hand
    bool reads_gradient = false;
    lineage_.ancestors(parameter.storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
        if (distance > kOpsOfAStep || (distance > 0 && record.storage == parameter.storage)) return false;
        reads_gradient = reads_gradient || record.storage == gradient;
        return !reads_gradient;
    });
    return reads_gradient;
}

void SignalGatherer::look_at_update(const OpEvent& event, const OpContext& context) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) == 0 || !has_elements(output)) continue;
        const int at = find(output);
        if (at < 0) continue;
        GatheredParameter& parameter = parameters_[static_cast<size_t>(at)];
        if (parameter.numel != output.numel) continue;
        parameter.changed = true;
        if (parameter.before_step != context.step) continue;
        parameter.carried.set(sample_of(context.step), parameter.used ? 1 : 0);
        double change = 0, size = 0;
        const int64_t count = std::min(parameter.numel, GatheredParameter::kElements);
        for (int64_t k = 0; k < count; ++k) {
            const double now =
                finite_element(output, sample_position(k, parameter.numel, GatheredParameter::kElements));
            change += (now - parameter.before[k]) * (now - parameter.before[k]);
            size += parameter.before[k] * parameter.before[k];
        }
        const int sample = sample_of(context.step);
        // Of elements without a gradient it says nothing that they stay.
        if (size > 0 && parameter.moves) parameter.update.set(sample, std::sqrt(change / size));
        const int number = context.in_optimizer ? step_size_among(event) : -1;
        if (number >= 0) step_sizes_.set(sample, std::fabs(event.scalars[number]));
    }
}

void SignalGatherer::optimizer_step(int64_t step, StackId stack) {
    if (!is_sampled(step)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++optimizer_steps_;
    if (optimizer_ == 0) {
        optimizer_ = stack;
        keep_stack(stack);
    }
}

}  // namespace numsan
