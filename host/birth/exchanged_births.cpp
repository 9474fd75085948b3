#include "host/birth/exchanged_births.h"

#include <optional>
#include <string>
#include <utility>

#include "host/finding/tables.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

BirthNote note_of(Kind kind, const TensorView& tensor, const Health& health) {
    BirthNote note;
    note.kind = kind;
    note.dtype = tensor.dtype;
    note.numel = tensor.numel;
    note.nan = health.nan;
    note.pos_inf = health.pos_inf;
    note.neg_inf = health.neg_inf;
    note.first_bad = health.first_bad;
    return note;
}

}  // namespace

void ExchangedBirths::leave_notes(const BirthKinds& kinds, const TensorView& tensor) const {
    if (exchange_ == nullptr || !exchange_->leaves()) return;
    const Health health = scanner_.health(tensor);
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr) continue;
        BirthNote note = note_of(kind, tensor, health);
        note.inherited = births_.inherited(birth->id);
        exchange_->leave(note, *birth);
    }
}

BirthId ExchangedBirths::received(Kind kind, const OpEvent& event, const OpContext& context) {
    if (exchange_ == nullptr) return 0;
    const TensorView& tensor = event.outputs[0];
    if (!scannable(tensor)) return 0;
    const Health health = scanner_.health(tensor);
    BirthNote note = note_of(kind, tensor, health);
    if (!exchange_->find(note, context.stack)) return 0;
    if (note.inherited) {
        const Birth* own = births_.find(note.birth);
        return own != nullptr && own->seq == note.seq && own->op == note.op ? note.birth : 0;
    }
    if (note.mechanism == Mechanism::None && !note.intended) return 0;
    Birth& birth = births_.make(kind, event, context, Phase::Data);
    birth.ignored = note.ignored;
    if (note.intended) {
        births_.intend(birth);
        return birth.id;
    }
    birth.op = note.op;
    birth.mechanism = note.mechanism;
    birth.phase = Phase::Data;
    birth.met = FirstMet::Parameter;
    birth.node.clear();
    birth.ranges = {};  // the worker's are not known
    birth.waits = true;
    birth.made_at = Place{note.file, note.line, note.function, std::nullopt};
    birth.evidence.push_back("made in DataLoader worker " + std::to_string(note.pid));
    TensorFact fact;
    fact.name = "output[0]";
    fact.dtype = tensor.dtype;
    fact.shape.assign(tensor.sizes, tensor.sizes + tensor.ndim);
    fact.health = health;
    birth.outputs.push_back(std::move(fact));
    // What the op read there is not known here.
    birth.features.op = plain_op_name(birth.op);
    birth.features.kind = kind;
    birth.features.dtype = tensor.dtype;
    birth.features.mechanism = birth.mechanism;
    birth.features.phase = birth.phase;
    birth.features.step = birth.step;
    return birth.id;
}

}  // namespace numsan
