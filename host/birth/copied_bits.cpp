#include "host/birth/copied_bits.h"

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

/// What an operand of the same type has moves as it is: clone, cat, copy_.
bool moves_elements(const OpEvent& event) { return traits_of(event).is({Form::Move, Form::Cast}); }

}  // namespace

BirthKinds CopiedBits::handed_on(const OpEvent& event, const TensorView& output) {
    BirthKinds kinds;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (input.integer != output.integer || input.storage == output.storage) continue;
        BirthKinds* known = ledger_.find(input);
        if (known == nullptr) continue;
        const bool all = input.numel == output.numel && covers_storage(input) && covers_storage(output);
        BirthKinds here = *known;
        if (all)
            known->copied_to = output.storage_data;
        else
            here.unsure = kNaN | kAnyInf;
        births_.add_kinds(kinds, here);
    }
    return kinds;
}

void CopiedBits::write(const OpEvent& event, const TensorView& output, int64_t step) {
    const bool written = (output.flags & kWritten) != 0;
    if (output.integer == IntegerType::None || !moves_elements(event)) {
        // New memory without values of a float type: what was known of its address is over.
        if (!written && (output.flags & (kReturned | kLater | kUnavailable)) == kReturned) ledger_.clear(output);
        return;
    }
    BirthKinds now = handed_on(event, output);
    const bool replaced = !written || (event.op->op_class == OpClass::Overwriting && covers_storage(output));
    if (!replaced) {
        if (now.empty()) return;
        if (const BirthKinds* before = ledger_.find(output)) births_.add_kinds(now, *before);
    }
    now.since = step;
    ledger_.set(output, now);
}

}  // namespace numsan
