// Outputs that were not read: what they may hold follows from the op and its operands.
#include <algorithm>

#include "host/ops/op_traits.h"
#include "host/verdict/verdict.h"

namespace numsan {
namespace {

KindSet less(KindSet all, KindSet some) { return static_cast<KindSet>(all & ~some); }
KindSet more(KindSet all, KindSet some) { return static_cast<KindSet>(all | some); }

/// Calls visit(input, its number among the operands) for those that output `index` is made of.
template <class Visit>
void each_operand(const OpEvent& event, int32_t index, Visit visit) {
    const int32_t lists = is_over_lists(event) ? std::max(event.output_count, 1) : 1;
    const int32_t members = event.input_count - event.input_count % lists;
    for (int32_t i = lists > 1 ? index : 0; i < members; i += lists) visit(event.inputs[i], i / lists);
    for (int32_t i = members; i < event.input_count; ++i) visit(event.inputs[i], i / lists);  // one for all members
}

}  // namespace

/// What output `index` may hold of what its operands may.
Verdict::Kinds Verdict::handed_on(const OpEvent& event, int32_t index) {
    Kinds kinds;
    if (!event.infinite_scalar && traits_of(event).form == Form::Replace) return kinds;
    each_operand(event, index, [&](const TensorView& input, int32_t operand) {
        if (event.op->op_class == OpClass::Overwriting && written_by(event, input)) return;
        const Kinds* known = ledger_.find(input);
        if (known == nullptr || (scannable(input) && !scanner_.range(input).suspicious)) return;
        Kinds here = *known;
        here.unsure = more(here.unsure, less(kNaN | kAnyInf, traits_of(event).kept_of(operand)));
        births_.add_kinds(kinds, here);
    });
    kinds.muted = kinds.flushed = 0;
    // An infinity times 0 is a NaN, by -1 one of the other sign. Of an intended one a NaN is a birth of its own.
    for (const Kind from : {kPosInf, kNegInf}) {
        for (const Kind to : kNonFiniteKinds) {
            if (kinds.of(to) != 0 || kinds.of(from) == 0 || births_.intended(kinds.of(from))) continue;
            kinds.of(to) = kinds.of(from);
            kinds.unsure = more(kinds.unsure, to);
        }
    }
    return kinds;
}

/// Of what the storage of output `index` held before the op wrote a part of it.
Verdict::Kinds Verdict::left_beside(const OpEvent& event, int32_t index) {
    const TensorView& output = event.outputs[index];
    const Kinds* before = ledger_.find(output);
    if (before == nullptr) return {};
    KindSet kept = 0;
    each_operand(event, index, [&](const TensorView& input, int32_t operand) {
        if (event.op->op_class != OpClass::Overwriting && input.storage == output.storage)
            kept = more(kept, traits_of(event).kept_of(operand));
    });
    Kinds left = *before;
    left.unsure = more(left.unsure, less(kNaN | kAnyInf, kept));
    return left;
}

void Verdict::unread(const OpEvent& event, const OpContext& context, OutputSet outputs, Outcome& outcome) {
    const auto may_hold = [&](const TensorView& t) { return ledger_.may_hold(t.storage); };
    const bool writes_infinity = event.op->op_class == OpClass::Constant && event.infinite_scalar;
    if (!writes_infinity && std::none_of(event.inputs, event.inputs + event.input_count, may_hold) &&
        std::none_of(event.outputs, event.outputs + event.output_count, may_hold))
        return;
    const std::lock_guard<std::mutex> lock(mutex_);
    read_gradients(event, context);
    const bool lists = is_over_lists(event);
    Kinds kinds = lists ? Kinds{} : handed_on(event, 0);
    for (const Kind kind : {kPosInf, kNegInf}) {
        if (!writes_infinity || kinds.of(kind) != 0) continue;
        if (births_.full()) sweep();
        kinds.of(kind) = births_.origin(kind, event, context, {}, {}, {});
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!outputs.contains(i) || is_view(event, output) || scannable(output)) continue;
        ledger_.mark_written(output);
        if (lists) kinds = handed_on(event, i);
        kinds.since = context.step;
        Kinds now = kinds;
        if ((output.flags & kWritten) != 0 && !covers_storage(output)) births_.add_kinds(now, left_beside(event, i));
        ledger_.set(output, now);
        follow_gradients(event, context, output, now);
        if ((output.flags & kWritten) != 0 && kinds.is_sure()) take_gradients(output, outcome);
    }
}

}  // namespace numsan
