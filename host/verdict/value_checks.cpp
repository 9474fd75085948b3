#include "host/verdict/value_checks.h"

#include <algorithm>
#include <string>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

constexpr size_t kMaxCheckedLosses = 64;

/// Something backward() could start from.
bool may_be_loss(const TensorView& tensor) {
    return scannable(tensor) && tensor.numel == 1 && (tensor.flags & kRequiresGrad) != 0;
}

}  // namespace

void ValueChecks::begin(const OpEvent& event, const OpContext& context) {
    if (!event.grad_enabled || losses_.size() >= kMaxCheckedLosses) return;
    if (event.output_count != 1 || scannable(event.outputs[0])) return;
    if (std::any_of(event.inputs, event.inputs + event.input_count, may_be_loss)) losses_.insert(context.seq);
}

void ValueChecks::answer(const OpEvent& event, const OpContext& context) {
    BirthKinds found;
    bool of_loss = false;
    lineage_.ancestors(event.inputs[0].storage, OpSeq::End, [&](const Lineage::Record& record, int) {
        const auto held = ledger_.entries().find(record.storage);
        const bool still = held != ledger_.entries().end() && lineage_.known(record.storage).last == record.id;
        BirthKinds here = still ? held->second : record.is_bad() ? births_.made_by(record.seq) : BirthKinds{};
        for (const Kind kind : kNonFiniteKinds) {
            if (!here.is_sure_of(kind)) here.of(kind) = 0;
        }
        births_.add_kinds(found, here);
        of_loss = of_loss || losses_.count(record.seq) != 0;
        return here.finite() && (record.is_bad() || traits_of(record.op->name).has(kAnswers));
    });
    escapes_.postpone(found, EscapeInto::Host, nullptr, context, PendingReason::Checked);
    PendingStore::List& checked = pending_.of(PendingReason::Checked);
    auto one = checked.rbegin();  // of a list that was full, others gave way
    for (; one != checked.rend() && one->seq == context.seq; ++one) one->of_loss = of_loss;
    if (one == checked.rbegin()) return;
    followed_ = {context.seq, event.thread, context.stack, 0};
    follows_.store(true, std::memory_order_relaxed);
}

std::optional<ValueChecks::Question> ValueChecks::question(const OpEvent& event, const OpContext& context) const {
    if (!follows() || event.thread != followed_.thread) return std::nullopt;
    const auto known = after_check_.find({followed_.stack, context.stack});
    return Question{followed_.stack, known != after_check_.end() ? std::optional(known->second) : std::nullopt};
}

void ValueChecks::follow(const Question& asked, const OpEvent& event, const OpContext& context, Outcome& outcome) {
    constexpr size_t kMaxKept = 1 << 10;
    if (!follows() || event.thread != followed_.thread || asked.check != followed_.stack || !asked.shown) return;
    const AfterCheck shown = *asked.shown;
    if (after_check_.size() >= kMaxKept) after_check_.clear();
    after_check_[{followed_.stack, context.stack}] = shown;
    if (shown == AfterCheck::Within && ++followed_.ops < kMostFollowed) return;
    follows_.store(false, std::memory_order_relaxed);
    if (shown != AfterCheck::Raised) return;
    // A gradient that overflowed is what a loss scaler is there for, one that the program wrote itself, too.
    const auto raised = [&](const PendingEscape& check) {
        const Birth* birth = births_.find(check.birth);
        const bool scaled = birth != nullptr && birth->phase == Phase::Backward && birth->mechanism == Mechanism::OVF;
        return check.seq == followed_.seq && !scaled;
    };
    for (const PendingEscape& check : pending_.take_if(PendingReason::Checked, raised)) {
        Birth* birth = births_.find(check.birth);
        if (birth == nullptr || birth->escaped) continue;
        birth->evidence.push_back("a check of the program read it and raised an exception, which the program caught");
        escapes_.report(*birth, check, Severity::Warning, outcome);
    }
}

void ValueChecks::end(bool failed, Outcome& outcome) {
    std::erase_if(pending_.of(PendingReason::Checked), [&](const PendingEscape& check) {
        if (!failed && !check.of_loss) return false;
        Birth* birth = births_.find(check.birth);
        if (birth == nullptr || birth->escaped) return true;
        birth->evidence.push_back(std::string("a check of the program read it; after that came no optimizer step") +
                                  (failed ? ", and the program failed" : ""));
        escapes_.report(*birth, check, Severity::Warning, outcome);
        return true;
    });
}

}  // namespace numsan
