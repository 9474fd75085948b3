#include "host/birth/step_phase.h"

#include <algorithm>
#include <cstring>

#include "host/base/thresholds.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

/// A closure that the optimizer calls computes the loss anew: autograd records it, or it runs in a module. An update
/// may run with gradients on, of data that autograd does not follow.
bool in_closure(const OpEvent& event, const OpContext& context) {
    return event.grad_enabled &&
           (context.in_module || std::any_of(event.inputs, event.inputs + event.input_count,
                                             [](const TensorView& t) { return (t.flags & kRequiresGrad) != 0; }));
}

}  // namespace

bool updates(const OpEvent& event, const OpContext& context) {
    return context.in_optimizer && context.node == nullptr && !in_closure(event, context);
}

Phase StepPhase::of(const OpEvent& event, const OpContext& context) const {
    if (context.node != nullptr || context.in_backward) return Phase::Backward;
    if (context.in_optimizer && !in_closure(event, context)) return Phase::Optimizer;
    if (context.in_data_loader) return Phase::Data;
    if (event.op->op_class == OpClass::Collective) return Phase::Comm;
    if (context.in_module) return Phase::Forward;
    bool touched = context.touched || context.from_module;
    bool state = context.on_state;
    const auto look = [&](const TensorView& t) {
        touched = touched || (t.flags & kRequiresGrad) != 0;
        state = state || is_parameter(t) || (lineage_.flags(t.storage) & Lineage::kGradient) != 0;
    };
    for (int32_t i = 0; i < event.input_count; ++i) look(event.inputs[i]);
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) != 0) {
            look(output);
        } else {  // new memory: what is remembered of its address was another tensor's
            touched = touched || (output.flags & kRequiresGrad) != 0;
        }
    }
    const bool by_hand = ((!event.grad_enabled && state) || of_gradients(event)) && !traits_of(event).has(kLayer);
    if (by_hand && !stacks_.in_function(context.stack)) {
        // A model that is cast before it learns anything is being set up.
        const bool cast = context.step == 0 && std::strcmp(event.op->name, "aten::_to_copy") == 0;
        return cast ? Phase::Load : Phase::Optimizer;
    }
    return touched ? Phase::Forward : Phase::Data;
}

/// It reads a leaf's gradient, or what was computed from gradients alone, and autograd records nothing of it: clipping
/// needs no no_grad().
bool StepPhase::of_gradients(const OpEvent& event) const {
    bool found = false;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kRequiresGrad) != 0) return false;
        found = found || (lineage_.flags(input.storage) & Lineage::kGradient) != 0;
        lineage_.ancestors(input.storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
            // The memory may have been used again, for a gradient, since this was written.
            Lineage::Record last;
            found = found || (lineage_.find(record.storage, last) && last.id == record.id &&
                              (last.flags & Lineage::kGradient) != 0);
            return !found && distance < kNearGradient && (record.flags & Lineage::kState) == 0;
        });
    }
    return found;
}

}  // namespace numsan
