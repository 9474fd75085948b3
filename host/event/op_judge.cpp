#include "host/event/op_judge.h"

#include <algorithm>

namespace numsan {

OpJudge::OpJudge(const Options& options, ContextBuilder& contexts, Lineage& lineage, ParameterHistory& parameters,
                 Verdict& verdict)
    : contexts_(contexts), lineage_(lineage), parameters_(parameters), verdict_(verdict) {
    for (size_t i = 0; i < kDTypeCount; ++i) near_overflow_from_[i] = near_overflow_pattern(DType(i), options.headroom);
}

/// A 16- or 8-bit result that is zero or all but zero in a backward pass, or zero elsewhere; or a weight of such a
/// type, or an average of one, that was updated.
bool OpJudge::any_vanishes(const OpEvent& event, const OpContext& context, const Range* ranges) {
    for (int32_t i = 0; i < event.output_count && i < kMaxRanges; ++i) {
        const TensorView& output = event.outputs[i];
        const DTypeInfo& type = info(output.dtype);
        if (!was_read(ranges[i])) continue;
        if ((output.flags & kScannable) == 0 || !type.is_narrow() || output.numel == 0) continue;
        if (context.node != nullptr && ranges[i].max_magnitude < (uint64_t(4) << type.mantissa_bits)) return true;
        if (context.node != nullptr) continue;
        if ((is_parameter(output) || context.on_state) && (output.flags & kWritten) != 0) return true;
        if (context.touched && event.grad_enabled && ranges[i].max_magnitude == 0) return true;
    }
    return false;
}

/// zeros_like, full_like, ...: a new tensor shaped like its operand.
bool OpJudge::is_like_operand(const char* op) {
    const size_t length = std::strlen(op);
    return length > 5 && std::strcmp(op + length - 5, "_like") == 0;
}

bool OpJudge::is_due(const OpEvent& event, const OpContext& context) noexcept {
    return near_overflow_places_.due(event.op, context.stack, context.step);
}

void OpJudge::add_parameter(const OpEvent& event, const TensorView& output, const Range& range) noexcept {
    const double now = magnitude_value(range.max_magnitude, output.dtype);
    const bool updated = learning_.load(std::memory_order_relaxed) && event.op->op_class == OpClass::Other;
    parameters_.add(output.impl, now, updated, [&] {
        Lineage::Record before;
        return lineage_.find(output.storage, before) ? magnitude_value(before.largest, before.dtype) : now;
    });
}

bool OpJudge::judge(const OpEvent& event, OpContext& context, OutputSet bad, const Range* ranges,
                    const ForwardMap::Made& made, bool accumulates, Outcome& outcome, const Operands* operands) {
    if (!concerns(event, context, bad, ranges)) {
        remember(event, context, ranges, accumulates);
        return false;
    }
    // An op of a device is judged late.
    context.learning = !event.on_device && learning_.load(std::memory_order_relaxed);
    BirthId born = 0;
    if (verdict_.repeat(event, context, bad, ranges, kMaxRanges, &born, outcome)) {
        if (made.node && born != 0) contexts_.forwards().born(made.record, born);
        remember(event, context, ranges, accumulates, operands);
        return true;
    }
    ForwardRecord forward;
    contexts_.forward_of(context, forward);
    uint32_t autograd_facts[kMaxAutogradFacts] = {};
    if (bad.any() && event.autograd_facts != nullptr) {  // may take the interpreter's lock, so not under the verdict's
        for (int32_t i = 0; i < event.input_count && i < kMaxAutogradFacts; ++i) {
            if ((event.inputs[i].flags & (kRequiresGrad | kLeaf)) == kRequiresGrad)
                autograd_facts[i] = event.autograd_facts(event.inputs[i].impl, true);
        }
        context.autograd_facts = autograd_facts;
    }
    verdict_.op(event, context, bad, forward, &born, outcome);
    context.autograd_facts = nullptr;
    if (made.node && born != 0) contexts_.forwards().born(made.record, born);
    remember(event, context, ranges, accumulates);
    return true;
}

}  // namespace numsan
