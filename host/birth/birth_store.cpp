#include "host/birth/birth_store.h"

#include <algorithm>

namespace numsan {

Birth* BirthStore::find(BirthId id) {
    const auto it = births_.find(id);
    return it != births_.end() ? &it->second : nullptr;
}

const Birth* BirthStore::find(BirthId id) const {
    const auto it = births_.find(id);
    return it != births_.end() ? &it->second : nullptr;
}

Birth& BirthStore::make(KindSet kind, const OpEvent& event, const OpContext& context, Phase phase) {
    while (births_.size() >= 2 * kMost) forget_oldest();
    ++made_;
    Birth& birth = births_[++last_];
    birth.id = last_;
    birth.kind = kind;
    birth.op = event.op->name;
    birth.phase = phase;
    birth.seq = context.seq;
    birth.forward_seq = context.seq;
    birth.step = context.step;
    birth.stack = KeptStack(context.stack, stacks_);
    birth.ranges = context.ranges;
    birth.forward_stack = KeptStack(0, stacks_);
    birth.last.stack = KeptStack(0, stacks_);
    birth.left_finite = KeptStack(0, stacks_);
    if (context.node != nullptr) {
        birth.node = context.node;
        birth.node_sequence = context.node_sequence;
    }
    return birth;
}

BirthKinds BirthStore::made_by(OpSeq seq) const {
    BirthKinds made;
    for (auto it = births_.rbegin(); it != births_.rend() && (it->second.seq >= seq || it->second.waits); ++it) {
        if (it->second.seq == seq && it->second.kind != 0) made.of(static_cast<Kind>(it->second.kind)) = it->first;
    }
    return made;
}

bool BirthStore::intended(BirthId id) const {
    const Birth* birth = find(id);
    return birth != nullptr && birth->intended;
}

void BirthStore::add_kinds(BirthKinds& into, const BirthKinds& from) const {
    for (const Kind kind : kNonFiniteKinds) {
        BirthId& have = into.of(kind);
        const BirthId more = from.of(kind);
        if (more == 0) continue;
        const bool sure = into.is_sure_of(kind), more_sure = from.is_sure_of(kind);
        const bool earlier = more <= have && (more_sure || !sure);
        const bool alike = intended(have) == intended(more);
        if (have != 0 && !(intended(have) && !intended(more)) && !(alike && ((more_sure && !sure) || earlier)))
            continue;
        have = more;
        into.unsure = static_cast<KindSet>(more_sure ? into.unsure & ~kind : into.unsure | kind);
    }
    if (into.muted == 0) into.muted = from.muted;
    if (into.flushed == 0) into.flushed = from.flushed;
}

BirthId BirthStore::unintended_inf(const BirthKinds& kinds) const {
    BirthId first = 0;
    for (const Kind kind : {kPosInf, kNegInf}) {
        const BirthId id = kinds.of(kind);
        if (id != 0 && !intended(id) && (first == 0 || id < first)) first = id;
    }
    return first;
}

void BirthStore::sweep(std::set<BirthId> used, const Ledger& ledger, const std::function<void(const Birth&)>& dropped) {
    for (const auto& [storage, entry] : ledger.entries()) {
        used.insert(entry.birth, entry.birth + 3);
        used.insert({entry.muted, entry.flushed});
    }
    used.insert({bad_loss, diverged, poisoned});
    std::erase_if(births_, [&](const auto& item) {
        if (used.count(item.first) != 0) return false;
        dropped(item.second);
        return true;
    });
    if (births_.size() >= kMost) {
        while (births_.size() > kMost - kMost / 4) forget_oldest();
    }
    sweep_at_ = std::clamp(2 * births_.size(), kFewest, kMost);
}

void BirthStore::forget_oldest() {
    births_.erase(births_.begin());
    ++forgotten_;
}

}  // namespace numsan
