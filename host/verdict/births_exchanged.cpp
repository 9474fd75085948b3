// Births in another process: notes left for it, and found from it, by what a tensor looks like.
#include <cstring>

#include "host/finding/tables.h"
#include "host/ops/op_traits.h"
#include "host/verdict/births.h"

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

bool adopts_storage(const OpEvent& event) {
    return event.output_count > 0 && std::strcmp(event.op->name, "aten::set_") == 0;
}

void Births::leave_notes(const Kinds& kinds, const TensorView& tensor) const {
    if (exchange_ == nullptr || !exchange_->leaves()) return;
    const Health health = scanner_.health(tensor);
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = find(kinds.of(kind));
        if (birth == nullptr) continue;
        BirthNote note = note_of(kind, tensor, health);
        note.inherited = birth->id <= inherited_;
        exchange_->leave(note, *birth);
    }
}

void Births::used(BirthId id, const OpEvent& event, const OpContext& context) {
    Birth* birth = find(id);
    if (birth == nullptr) return;
    // A batch goes through the model first: what the optimizer is the first to read is state of its own.
    if (birth->unread && updates(event, context) && birth->phase == Phase::Data) {
        birth->features.mechanism = birth->mechanism = Mechanism::STATE;
        birth->phase = birth->features.phase = Phase::Load;
        birth->evidence.push_back("nothing read it before the optimizer did: it is state that was loaded");
    }
    birth->unread = false;
    if (!birth->waits) return;
    birth->waits = false;
    if (!birth->reader.empty()) birth->reader = event.op->name;
    birth->seq = birth->forward_seq = context.seq;
    birth->step = birth->features.step = context.step;
}

BirthId Births::handed_over(Kind kind, const OpEvent& event, const OpContext& context) {
    if (exchange_ == nullptr || !adopts_storage(event)) return 0;
    const TensorView& tensor = event.outputs[0];
    if (!scannable(tensor)) return 0;
    const Health health = scanner_.health(tensor);
    BirthNote note = note_of(kind, tensor, health);
    if (!exchange_->find(note, context.stack)) return 0;
    if (note.inherited) {
        const Birth* own = find(note.birth);
        return own != nullptr && own->seq == note.seq && own->op == note.op ? note.birth : 0;
    }
    if (note.mechanism == Mechanism::None && !note.intended) return 0;
    Birth& birth = make(kind, event, context);
    birth.intended = note.intended;
    birth.ignored = note.ignored;
    if (note.intended) return birth.id;
    ++made_;
    birth.op = note.op;
    birth.mechanism = note.mechanism;
    birth.phase = Phase::Data;
    birth.node.clear();
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
