#include "host/verdict/kept_state.h"

#include <map>

namespace numsan {
namespace {

constexpr size_t kMaxWrites = 256;

/// Moments are written in the step of a finding, averages of parameters and buffers at the latest before the next ends.
constexpr int kStepsToLook = 2;

}  // namespace

void KeptState::note_write(const BirthKinds& kinds, const TensorView& tensor, const OpContext& context) {
    if (context.ignored) return;
    if (writes_.size() >= kMaxWrites) writes_ = take_writes();  // less those whose values are gone
    if (writes_.size() >= kMaxWrites) return;
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr || birth->intended || birth->ignored || birth->escaped) continue;
        writes_.push_back({birth->id, tensor.impl, tensor.storage, context.step, context.seq, context.stack});
    }
}

bool KeptState::end_step() {
    if (looked_for_ != escapes_.bad_places()) steps_to_look_ = kStepsToLook;
    looked_for_ = escapes_.bad_places();
    if (steps_to_look_ == 0) return false;
    --steps_to_look_;
    return true;
}

void KeptState::find_contaminated(const std::vector<KeptTensor>& kept, Outcome& outcome) {
    std::map<const void*, int> tensors;
    for (const KeptTensor& tensor : kept) ++tensors[tensor.storage];
    for (const KeptTensor& tensor : kept) {
        const auto held = ledger_.entries().find(tensor.storage);
        if (held == ledger_.entries().end() || tensors[tensor.storage] > 1) continue;
        for (const Kind kind : kNonFiniteKinds) {
            const Birth* birth = births_.find(held->second.of(kind));
            if (birth == nullptr || !birth->escaped || birth->intended || !held->second.is_sure_of(kind)) continue;
            escapes_.contaminate(*birth, tensor.kind, tensor.impl, held->second.since, outcome);
        }
    }
}

std::vector<StateWrite> KeptState::take_writes() {
    std::vector<StateWrite> taken;
    taken.swap(writes_);
    std::erase_if(taken, [&](const StateWrite& write) {
        const Birth* birth = births_.find(write.birth);
        const auto held = ledger_.entries().find(write.storage);
        const bool gone = held == ledger_.entries().end() || birth == nullptr ||
                          held->second.of(Kind(birth->kind)) != birth->id ||
                          !held->second.is_sure_of(Kind(birth->kind));
        return gone || birth->scaler || birth->escaped;
    });
    return taken;
}

void KeptState::confirm(const StateWrite& write, EscapeInto into, Outcome& outcome) {
    Birth* birth = births_.find(write.birth);
    if (birth == nullptr) return;
    escapes_.report_gradient_of(*birth, Severity::Error, outcome);
    escapes_.report(*birth,
                    {.birth = write.birth,
                     .into = into,
                     .impl = write.impl,
                     .step = write.step,
                     .seq = write.seq,
                     .stack = write.stack},
                    Severity::Error, outcome);
}

void KeptState::add_births(std::set<BirthId>& births) const {
    for (const StateWrite& write : writes_) births.insert(write.birth);
}

}  // namespace numsan
