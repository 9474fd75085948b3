// Where the program is when an event happens, and what its operands were computed from: OpContext.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/base/ids.h"
#include "host/event/forward_map.h"
#include "host/event/optimizer_rounds.h"
#include "host/event/step_counter.h"
#include "host/event/thread_state.h"
#include "host/ops/op_traits.h"
#include "host/options/options.h"
#include "host/stacks/open_ranges.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"
#include "host/track/op_context.h"

namespace numsan {

/// What is looked up of an op's operands once.
struct Operands {
    Lineage::Known known[Lineage::kMaxKnown];
};

/// [MT] What every op needs is in this header, so that Session::op_end is one function.
class ContextBuilder {
  public:
    /// What it is made with outlives it. Without `has_python` every thread is the program's own.
    ContextBuilder(const Options& options, StackSource& stacks, Lineage& lineage, bool has_python);

    /// Where the program is, for op number `seq`. What the operands came from is trace()'s.
    OpContext begin(const ThreadState& thread, OpSeq seq) const {
        OpContext context;
        context.seq = seq;
        context.step = steps_.count();
        context.in_optimizer = thread.optimizer_depth > 0;
        context.in_data_loader = thread.loader_depth > 0;
        context.ignored = ignores(thread);
        context.ranges = ranges_.path(thread.ranges);
        context.underflow = underflow_;
        context.headroom = headroom_;
        context.after_compiled = thread.after_compiled;
        if (const ThreadState::Node* node = thread.node()) {
            context.node = node->name;
            context.node_sequence = node->sequence;
            context.node_thread = node->thread;
            context.graph_task = node->graph_task;
        }
        return context;
    }

    /// What the operands were computed from. Before the op's own writes are remembered.
    void trace(const OpEvent& event, OpContext& context, Operands* operands = nullptr) noexcept {
        uint32_t seen = 0;
        uint32_t known = 0;
        bool reads_parameter = false;
        Lineage::Known unwanted{};
        for (int32_t i = 0; i < event.input_count; ++i) {
            const TensorView& input = event.inputs[i];
            Lineage::Known& last = operands != nullptr && i < Lineage::kMaxKnown ? operands->known[i] : unwanted;
            if ((input.flags & kNumber) == 0) {
                last = lineage_.known(input.storage);
            } else {  // no op made a number: what is remembered is of memory used again
                lineage_.forget(input.storage);
                last = {};
            }
            seen |= input.flags;
            known |= last.flags;
            reads_parameter |= is_parameter(input);
        }
        context.touched = context.touched || (seen & kRequiresGrad) != 0 || (known & Lineage::kTouched) != 0;
        context.from_module = context.from_module || (known & Lineage::kInModule) != 0;
        context.on_state = context.on_state || reads_parameter || (known & Lineage::kState) != 0;
    }

    /// What only the thread of the op knows, while it is there.
    void follow(ThreadState& thread, const OpEvent& event, OpContext& context) {
        if (event.grad_enabled && context.node == nullptr &&
            std::any_of(event.inputs, event.inputs + event.input_count, is_parameter)) {
            thread.last_parameter_read = context.seq;
        }
        context.last_parameter_read = thread.last_parameter_read;
        context.in_backward = event.graph_task != -1;
        if (context.node == nullptr && (steps_.awaits_forward() || steps_.awaits_update())) [[unlikely]]
            count_step(thread, event, context);
        if (thread.optimizer_depth > 0 && !thread.optimizer_step.known && !event.grad_enabled && !context.in_backward)
            [[unlikely]]
            learn_round(thread, event);
        context.stack = stacks_.capture();
        context.in_module = stacks_.in_module(context.stack);
        // Autograd's threads for devices have no Python either; between nodes they reduce gradients to their shapes.
        context.on_library_thread =
            context.stack == 0 && context.node == nullptr && !context.in_backward && has_python_;
    }

    /// Narrows on_state, which so far says what the operands are, to ops that work on them by hand.
    static void narrow_state(const OpEvent& event, OpContext& context) noexcept {
        context.on_state = context.on_state && !event.grad_enabled && context.node == nullptr && !context.in_backward &&
                           !context.in_module && (context.in_optimizer || !traits_of(event).has(kLayer));
    }

    /// Notes the op, so that the node which it made finds it.
    ForwardMap::Made note_forward(const OpEvent& event, const OpContext& context) {
        ForwardMap::Made made{{event.thread,
                               NodeSeq{event.forward_sequence},
                               event.grad_enabled,
                               {event.op, context.stack, 0, context.seq, context.ranges}},
                              false};
        made.node = event.forward_sequence != ~uint64_t(0) && (context.node == nullptr || event.grad_enabled) &&
                    forwards_.add(made.record);
        return made;
    }
    /// The op that made the node around it, if its number and its name agree; else `forward` stays as it is.
    void forward_of(const OpContext& context, ForwardRecord& forward);

    OpenRanges& ranges() { return ranges_; }
    /// Whether the program asks not to look at what the thread does.
    bool ignores(const ThreadState& thread) const noexcept {
        return thread.ignore_depth > 0 || ranges_.ignores(thread.ranges);
    }
    StepCounter& steps() { return steps_; }
    const StepCounter& steps() const { return steps_; }
    OptimizerRounds& rounds() { return rounds_; }
    ForwardMap& forwards() { return forwards_; }

  private:
    void count_step(ThreadState& thread, const OpEvent& event, OpContext& context) noexcept;
    void learn_round(ThreadState& thread, const OpEvent& event);

    StackSource& stacks_;
    Lineage& lineage_;
    const double headroom_;
    const bool underflow_;
    const bool has_python_;
    OpenRanges ranges_;
    StepCounter steps_;
    OptimizerRounds rounds_;
    ForwardMap forwards_;
};

}  // namespace numsan
