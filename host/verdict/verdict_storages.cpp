// Verdict: what is asked and said of one storage.
#include "host/verdict/verdict.h"

#include "host/ops/operands.h"

namespace numsan {

bool Verdict::knows(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ledger_.find(tensor) != nullptr;
}

bool Verdict::is_sure_of(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const BirthKinds* known = ledger_.find(tensor);
    return known != nullptr && known->is_sure();
}

void Verdict::forget(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.clear(tensor);
}

Ledger::Contents Verdict::contents_of(const TensorView& tensor) {
    if (!ledger_.may_hold(tensor.storage)) return {};
    const std::lock_guard<std::mutex> lock(mutex_);
    return ledger_.contents_of(tensor);
}

void Verdict::adopt(const TensorView& tensor, const Ledger::Contents& contents) {
    const bool empty = contents.births.empty() && contents.unwritten.mark == 0 && contents.received.op == nullptr;
    if (empty && !ledger_.may_hold(tensor.storage)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.adopt(tensor, contents);
}

void Verdict::holds(const TensorView& tensor, const Ledger::Entry& births) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.set(tensor, births);
}

/// Of what one rank sends to all others, in the operand that they receive it in.
BirthKinds Verdict::bad_operands(const OpEvent& event) {
    BirthKinds bad;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        const BirthKinds* known = ledger_.find(input);
        if (known != nullptr && scannable(input) && scanner_.range(input).suspicious) store_.add_kinds(bad, *known);
    }
    return bad;
}

}  // namespace numsan
