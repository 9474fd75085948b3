#include "host/event/context_builder.h"

#include "host/ops/op_traits.h"

namespace numsan {

ContextBuilder::ContextBuilder(const Options& options, StackSource& stacks, Lineage& lineage, bool has_python)
    : stacks_(stacks),
      lineage_(lineage),
      headroom_(options.headroom),
      underflow_(options.underflow),
      has_python_(has_python) {}

/// Of programs whose optimizers do not say when they step.
void ContextBuilder::count_step(ThreadState& thread, const OpEvent& event, OpContext& context) noexcept {
    if (steps_.awaits_forward()) {
        thread.ended_step = steps_.forward(event, &thread, context.on_state) || thread.ended_step;
        context.step = steps_.count();
    }
    if (event.op->op_class != OpClass::Collective && steps_.awaits_update()) steps_.update(event, &thread);
}

/// Which parameters the optimizer writes, until they distinguish it from others.
void ContextBuilder::learn_round(ThreadState& thread, const OpEvent& event) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) != 0 && is_parameter(output))
            rounds_.wrote(thread.optimizer_step, output.storage);
    }
}

void ContextBuilder::forward_of(const OpContext& context, ForwardRecord& forward) {
    if (context.node == nullptr) return;
    ForwardMap::Record record;
    if (!forwards_.find(context.node_thread, context.node_sequence, record)) return;
    // With gradients off only an autograd.Function takes a number: an op that ran inside it shows where it was called.
    if (record.gradients == 0 || node_is_made_by(context.node, record.forward.op->name)) forward = record.forward;
}

}  // namespace numsan
