// Checks that the program makes of its own values, `if isnan(loss): raise`. A value that one has read is reported only
// where the program ended over it: a program that skips a batch and trains on knows.
#include <algorithm>
#include <string>

#include "host/ops/op_traits.h"
#include "host/verdict/verdict.h"

namespace numsan {
namespace {

constexpr size_t kMaxCheckedLosses = 64;

/// What was written had something that is not finite. Of 8-bit types without infinities: a NaN that all bits say.
bool is_bad(const Lineage::Record& record) {
    const DTypeInfo& type = info(record.dtype);
    return record.largest >= (type.infinity == InfinityKind::IEEE ? type.exponent_mask() : type.magnitude_mask());
}

/// Something backward() could start from.
bool may_be_loss(const TensorView& tensor) {
    return scannable(tensor) && tensor.numel == 1 && (tensor.flags & kRequiresGrad) != 0;
}

}  // namespace

/// An op that reads something bad and returns no values of its own may be the first of a check.
void Verdict::follow_check(const OpEvent& event, const OpContext& context, const Kinds& before) {
    if (before.finite() || !event.grad_enabled || checked_losses_.size() >= kMaxCheckedLosses) return;
    if (event.output_count != 1 || scannable(event.outputs[0])) return;
    if (std::any_of(event.inputs, event.inputs + event.input_count, may_be_loss)) checked_losses_.insert(context.seq);
}

/// The program reads a number that is no value of a float type: is it the answer to a question about something bad?
void Verdict::answered(const OpEvent& event, const OpContext& context) {
    Kinds found;
    bool of_loss = false;
    lineage_.ancestors(event.inputs[0].storage, INT64_MAX, [&](const Lineage::Record& record, int) {
        const auto held = ledger_.entries().find(record.storage);
        const bool still = held != ledger_.entries().end() && lineage_.known(record.storage).last == record.id;
        Kinds here = still ? held->second : is_bad(record) ? births_.made_by(record.seq) : Kinds{};
        for (const Kind kind : kNonFiniteKinds) {
            if (!here.is_sure_of(kind)) here.of(kind) = 0;
        }
        births_.add_kinds(found, here);
        of_loss = of_loss || checked_losses_.count(record.seq) != 0;
        return here.finite() && (is_bad(record) || traits_of(record.op->name).has(kAnswers));
    });
    PendingStore::List& checked = pending_.of(PendingReason::Checked);
    const size_t known = checked.size();
    postpone(found, EscapeInto::Host, nullptr, context, PendingReason::Checked);
    for (size_t i = known; i < checked.size(); ++i) checked[i].of_loss = of_loss;
}

/// The program is over. Whether it failed may be known only later: what is not reported yet is kept.
void Verdict::end_checks(bool failed, Outcome& outcome) {
    std::erase_if(pending_.of(PendingReason::Checked), [&](const PendingEscape& check) {
        if (!failed && !check.of_loss) return false;
        Birth* birth = births_.find(check.birth);
        if (birth == nullptr || birth->escaped) return true;
        birth->evidence.push_back(std::string("a check of the program read it; after that came no optimizer step") +
                                  (failed ? ", and the program failed" : ""));
        report(check, Severity::Warning, outcome);
        return true;
    });
}

}  // namespace numsan
