#include "host/verdict/unread_results.h"

#include <algorithm>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

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

BirthKinds UnreadResults::handed_on(const OpEvent& event, int32_t index) {
    BirthKinds kinds;
    if (!event.infinite_scalar && traits_of(event).form == Form::Replace) return kinds;
    each_operand(event, index, [&](const TensorView& input, int32_t operand) {
        if (event.op->op_class == OpClass::Overwriting && written_by(event, input)) return;
        const BirthKinds* known = ledger_.find(input);
        if (known == nullptr || (scannable(input) && !scanner_.range(input).suspicious)) return;
        BirthKinds here = *known;
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

BirthKinds UnreadResults::left_beside(const OpEvent& event, int32_t index) {
    const TensorView& output = event.outputs[index];
    const BirthKinds* before = ledger_.find(output);
    if (before == nullptr) return {};
    KindSet kept = 0;
    each_operand(event, index, [&](const TensorView& input, int32_t operand) {
        if (event.op->op_class != OpClass::Overwriting && input.storage == output.storage)
            kept = more(kept, traits_of(event).kept_of(operand));
    });
    BirthKinds left = *before;
    left.unsure = more(left.unsure, less(kNaN | kAnyInf, kept));
    return left;
}

}  // namespace numsan
