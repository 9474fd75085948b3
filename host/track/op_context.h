// What was so when an op ran: its stack, and the node and scopes around it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/stacks/range_path.h"
#include "host/stacks/stack_source.h"

namespace numsan {

struct OpContext {
    OpSeq seq{};       ///< number of the op in program order
    int64_t step = 0;  ///< finished optimizer steps
    StackId stack = 0;
    RangePath ranges;
    bool in_module = false;
    bool in_optimizer = false;
    bool in_data_loader = false;
    bool touched = false;      ///< an operand was computed from parameters
    bool from_module = false;  ///< an operand was computed inside a module, or from such a value
    /// an operand is a parameter, a gradient or an average of them, gradients are off, no module runs
    bool on_state = false;
    bool learning = false;        ///< a gradient had reached a parameter before it; false for an op of a device
    bool after_compiled = false;  ///< the last node that ended on this thread was a compiled region's
    double headroom = 0;          ///< option of that name; 0: nothing is said of large values
    uint16_t near_overflow = 0;   ///< bit i: output i of a narrow type is close to the largest number of it
    bool underflow = true;        ///< zeros that values too small for their type turned into are to be reported
    bool in_backward = false;     ///< inside a backward(): a node runs, or a hook between nodes
    OpSeq last_parameter_read = OpSeq::None;  ///< number of this thread's last forward op that read a parameter
    bool on_library_thread =
        false;                   ///< a thread without Python in a Python process, outside every node: a library's own
    bool ignored = false;        ///< inside record_function("numsan:ignore")
    int unavailable = 0;         ///< operands that had died or changed before the op was looked at
    const char* node = nullptr;  ///< running autograd node, null outside a backward pass
    NodeSeq node_sequence = NodeSeq::None;
    uint64_t node_thread = 0;
    int64_t graph_task = -1;
    uint64_t collective = 0;  ///< what CollectiveLog numbered it; 0: it is none, or has no number
    /// bits of AutogradFact for the first inputs, asked before any lock was taken; null when not asked
    const uint32_t* autograd_facts = nullptr;
};
inline constexpr int32_t kMaxAutogradFacts = 16;  ///< length of OpContext::autograd_facts

/// What autograd knows of operand number `index`.
inline uint32_t autograd_facts_of(const OpContext& context, const TensorView& input, std::ptrdiff_t index) {
    const bool asked = context.autograd_facts != nullptr && index >= 0 && index < kMaxAutogradFacts;
    return asked ? context.autograd_facts[index] : input.flags >> kAutogradFactsShift;
}

/// Operand number `index` is a parameter or a view of one.
inline bool holds_parameter(const OpContext& context, const TensorView& input, std::ptrdiff_t index) {
    return is_parameter(input) || (autograd_facts_of(context, input, index) & kViewOfParameter) != 0;
}

/// For copies of an event's operands that are judged when the context's `autograd_facts` cannot be asked any more.
inline void keep_autograd_facts(TensorView* inputs, int32_t count, const OpContext& context) {
    for (int32_t i = 0; context.autograd_facts != nullptr && i < count && i < kMaxAutogradFacts; ++i) {
        inputs[i].flags |= context.autograd_facts[i] << kAutogradFactsShift;
    }
}

}  // namespace numsan
