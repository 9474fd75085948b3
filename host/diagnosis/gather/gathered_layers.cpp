// What SignalGatherer measures of the layers around an op: where weights got their first values, what a first layer
// reads, which layers lie before another, and what a loss is held against.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "host/diagnosis/gather/element_sample.h"
#include "host/diagnosis/gather/signal_gatherer.h"
#include "host/ops/op_traits.h"
#include "host/track/integers.h"

namespace numsan {
namespace {

constexpr int kNearLayer = 16;     ///< ops between two layers: a norm, an activation, views, a sum
constexpr int kOpsOfAnInit = 6;    ///< that an initialiser makes of random numbers
constexpr double kMostKept = 0.1;  ///< of a dropout that is worth a word

/// What scales and moves random numbers, as trunc_normal_ and `torch.randn(n) * 0.02` do.
bool moves_numbers(std::string_view op) {
    for (const std::string_view one : {"mul", "div", "add", "sub", "erfinv", "clamp", "neg"}) {
        if (plain_op_name(op) == one) return true;
    }
    return false;
}

bool are_zeros(const TensorView& tensor) {
    bool zeros = tensor.numel > 0;
    each_sampled(tensor, GatheredParameter::kElements, [&](double value) { zeros = zeros && value == 0; });
    return zeros;
}

}  // namespace

/// Called when the tensor is seen first, before an optimizer writes it.
void SignalGatherer::find_first_values(const TensorView& tensor, GatheredParameter& parameter) const {
    Lineage::Record last;
    if (!has_elements(tensor) || !lineage_.find(tensor.storage, last)) return;
    // Batched products read a weight that is expanded to the batch.
    const int64_t whole = std::min(tensor.numel, tensor.storage_bytes / int64_t(info(tensor.dtype).element_bytes()));
    lineage_.ancestors(tensor.storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
        if (distance > kOpsOfAnInit || parameter.initial != Initial::Unknown) return false;
        const OpTraits& op = traits_of(record.op->name);
        if ((op.has(kRandom) || op.has(kConstant)) && record.numel < whole) return true;  // a part: padding
        if (op.has(kRandom)) {
            parameter.initial = Initial::Random;
        } else if (op.has(kConstant)) {
            if (are_zeros(tensor)) parameter.initial = Initial::Zeros;
        } else {
            return moves_numbers(record.op->name);
        }
        parameter.made_at = record.stack;
        return false;
    });
    keep_stack(parameter.made_at);
}

/// A parameter of that name, of which the op reads a view, or all. Its memory may be another tensor's by now: whatever
/// writes it counts as a change.
int SignalGatherer::find_untrained(const TensorView& tensor) {
    int at = find(tensor);
    const auto named = at < 0 || parameters_[static_cast<size_t>(at)].written != OpSeq::None
                           ? untrained_.find(tensor.storage)
                           : untrained_.end();
    if (named == untrained_.end()) return at;
    const OpSeq written = lineage_.written_at(tensor.storage);
    if (at >= 0) {
        GatheredParameter& known = parameters_[static_cast<size_t>(at)];
        known.changed = known.changed || (written != OpSeq::None && written != known.written);
        return at;
    }
    TensorView whole = tensor;
    whole.impl = named->second.impl;
    at = find_or_add(whole);
    if (at < 0) return at;
    GatheredParameter& made = parameters_[static_cast<size_t>(at)];
    made.name = named->second.name;
    made.optimized = named->second.optimized;
    made.of_module = named->second.of_module;
    made.written = written;
    return at;
}

/// Layers before the op, up to the nearest on each way: what is computed of them goes into `parameter`.
void SignalGatherer::look_before(const OpEvent& event, int parameter) {
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (find(event.inputs[i]) >= 0) continue;
        lineage_.ancestors(event.inputs[i].storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
            if (distance > kNearLayer) return false;
            const int before = parameter_read_by(record.seq);
            if (before < 0) return true;
            if (before == parameter) return false;
            GatheredParameter& one = parameters_[static_cast<size_t>(before)];
            if (one.next < 0 || !parameters_[static_cast<size_t>(one.next)].changed) one.next = parameter;
            return false;
        });
    }
}

/// Whether what is computed of the parameter comes to one that changes: of a network that is random by design, and
/// nothing but a target, it does not.
bool SignalGatherer::comes_to_trained(const GatheredParameter& parameter) const {
    const GatheredParameter* at = &parameter;
    for (size_t walked = 0; at->next >= 0 && walked < parameters_.size(); ++walked) {
        at = &parameters_[static_cast<size_t>(at->next)];
        if (at->changed) return true;
    }
    return false;
}

void SignalGatherer::look_at_detach(const OpEvent& event, const OpContext& context) {
    lineage_.ancestors(event.inputs[0].storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
        if (distance > kNearLayer) return false;
        const int before = parameter_read_by(record.seq);
        if (before < 0) return true;
        GatheredParameter& one = parameters_[static_cast<size_t>(before)];
        if (one.detached_at == 0) {
            one.detached_at = context.stack;
            keep_stack(context.stack);
        }
        return false;
    });
}

/// The data that a weight's op reads: what is computed of no parameter.
void SignalGatherer::look_at_input(const OpEvent& event, const OpContext& context, GatheredParameter& parameter) {
    if (parameter.ndim < 2) return;
    const int sample = sample_of(context.step);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!has_elements(input) || input.numel < 2 || find(input) >= 0) continue;
        if ((input.flags & kRequiresGrad) != 0 || lineage_.touched(input.storage)) return;
        if (!parameter.input.has(sample)) parameter.input.set(sample, sampled_size(input, kElements));
        return;
    }
}

/// native_dropout has its probability among its arguments; else a mask is drawn and divided by the share it keeps.
void SignalGatherer::look_at_dropout(const OpEvent& event, const OpContext& context) {
    if (event.scalar_count < 1 || event.output_count < 1) return;
    double dropped = event.scalars[0];
    if (event.op->mutates) {
        const double kept = event.scalars[0];
        Lineage::Record mask;
        if (!(kept > 0) || kept > kMostKept || !lineage_.find(event.outputs[0].storage, mask)) return;
        if (plain_op_name(mask.op->name) != "bernoulli") return;
        dropped = 1 - kept;
    }
    if (!(dropped >= 1 - kMostKept)) return;
    if (GatheredActivation* here = activation_of(event, context)) here->dropped.set(sample_of(context.step), dropped);
}

void SignalGatherer::look_at_labels(const OpEvent& event, GatheredLoss& loss) const {
    const std::string_view op = plain_op_name(event.op->name);
    const bool of_classes = op == "_log_softmax" || op == "nll_loss_forward" || op == "nll_loss2d_forward";
    if (of_classes && event.inputs[0].ndim >= 2) loss.classes = event.inputs[0].sizes[1];
    if (op == "_log_softmax" || event.input_count < 2) return;
    const TensorView& labels = event.inputs[1];
    const auto visit = [&](double value) {
        if (loss.labels == 0) loss.label = value;
        loss.same_labels = loss.same_labels && value == loss.label;
        ++loss.labels;
    };
    if (has_elements(labels)) {
        const double size = sampled_size(labels, kElements);
        if (loss.labels == 0 && size > 0 && has_elements(event.inputs[0]))
            loss.scale = sampled_size(event.inputs[0], kElements) / size;
        return each_sampled(labels, kElements, visit);
    }
    if (!holds_integers(labels)) return;
    const int64_t count = std::min(labels.numel, kElements);
    for (int64_t i = 0; i < count; ++i)
        visit(static_cast<double>(integer_at(labels, offset_of(labels, sample_position(i, labels.numel, kElements)))));
}

/// Of a root: the loss function whose value was negated to make it; null where none was.
const OpInfo* SignalGatherer::negated_loss(const Lineage::Record& root) const {
    Lineage::Record value;
    if (plain_op_name(root.op->name) != "neg" || root.input_count != 1 || !lineage_.find(root.inputs[0], value))
        return nullptr;
    return traits_of(value.op->name).has(kLoss) ? value.op : nullptr;
}

}  // namespace numsan
