#include "host/verdict/loss_start.h"

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

/// Whether op `seq` leads to the loss by ops that read no parameter: it is a term of the loss, whatever runs after it.
bool is_term(const Lineage& lineage, const void* loss, OpSeq seq) {
    bool found = false;
    lineage.ancestors(loss, OpSeq::End, [&](const Lineage::Record& record, int) {
        found = found || record.seq == seq;
        return !found && record.seq > seq && !traits_of(record.op->name).has(kLayer) && !lineage.reads_state(record);
    });
    return found;
}

/// The magnitude of the largest target of a binary cross entropy that the loss was made of, where that is far beyond 1;
/// else 0. Only of targets as large as what they are compared with: others may be a part of their storage.
double wrong_target(const Lineage& lineage, const void* loss, OpSeq seq) {
    double found = 0;
    lineage.ancestors(loss, seq, [&](const Lineage::Record& record, int distance) {
        if (found > 0 || distance > kNearUpstream) return false;
        if (traits_of(record.op->name).form != Form::BinaryCrossEntropy) return true;
        Lineage::Record prediction, target;
        const bool known = record.input_count >= 2 && (record.flags & Lineage::kUnknownOperand) == 0 &&
                           lineage.find(record.inputs[0], prediction) && lineage.find(record.inputs[1], target);
        if (known && target.was_read() && target.numel == prediction.numel) {
            const double largest = magnitude_value(target.largest, target.dtype);
            if (largest > 1 + kWrongTarget) found = largest;
        }
        return false;
    });
    return found;
}

}  // namespace

void LossStart::begin(const OpEvent& event, const OpContext& context, const BirthKinds& before, Outcome& outcome) {
    const TensorView& loss = event.inputs[0];
    if (!scannable(loss)) return;
    escapes_.loss_begins(context.seq, context.last_parameter_read);
    const Health health = scanner_.health(loss);
    losses_.add(health.finite > 0 ? health.absmax : 0);
    losses_.set_wrong_target(losses_.divergence() > 0 ? wrong_target(lineage_, loss.storage, context.seq) : 0);
    births_.bad_loss = 0;
    if (health.kinds() == 0) {
        if (before.flushed != 0 && health.absmax == 0)
            escapes_.postpone(before.flushed, EscapeInto::Loss, loss.impl, context, PendingReason::Flushed);
        return;
    }
    BirthKinds kinds = before;
    if (kinds.finite()) {
        kinds = external_.made(loss, event, context, health);
        kinds.since = context.step;
        ledger_.set(loss, kinds);
    }
    for (const Kind kind : kNonFiniteKinds) {
        Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr) continue;
        if (!birth->intended) births_.bad_loss = birth->id;
        birth->features.after_parameters = is_term(lineage_, loss.storage, birth->forward_seq);
        // What overflowed only because a scaler scaled it is the scaler's to catch.
        if (stacks_.is_scaler(birth->stack)) {
            escapes_.postpone(birth->id, EscapeInto::Loss, loss.impl, context, PendingReason::Gradient);
        } else {
            escapes_.escape(*birth, EscapeInto::Loss, loss.impl, context, Severity::Error, outcome);
        }
    }
}

}  // namespace numsan
