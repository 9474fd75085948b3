// The births that are kept, by number, and those of them that later births go back to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "host/base/ids.h"
#include "host/cause/birth.h"
#include "host/track/ledger.h"
#include "host/track/op_context.h"

namespace numsan {

inline constexpr Kind kNonFiniteKinds[] = {kNaN, kPosInf, kNegInf};

using BirthKinds = Ledger::Entry;  ///< births by kind

/// Not thread-safe: the verdict's lock protects it. Bounded: births that nothing goes back to any more are swept, and
/// beyond kMost the oldest.
class BirthStore {
  public:
    using Births = std::map<BirthId, Birth>;
    static constexpr size_t kMost = 1 << 14;

    /// Stacks of births are kept in `stacks`, which outlives this; null: they are numbers only.
    explicit BirthStore(const StackSource* stacks = nullptr) : stacks_(stacks) {}

    /// Null: it was dropped.
    Birth* find(BirthId id);
    const Birth* find(BirthId id) const;
    /// Whether the program wrote that value on purpose.
    bool intended(BirthId id) const;
    const Births& all() const { return births_; }
    Births& all() { return births_; }

    /// A new birth at this op. The oldest is dropped where there is no room.
    Birth& make(KindSet kind, const OpEvent& event, const OpContext& context, Phase phase);
    /// The program wrote it on purpose.
    void intend(Birth& birth) {
        birth.intended = true;
        --made_;
    }
    /// What was just made is none.
    void drop(BirthId id) {
        births_.erase(id);
        --made_;
    }
    BirthId last() const { return last_; }  ///< the newest that was ever made
    int64_t made() const { return made_; }  ///< without intended ones

    /// The births that op number `seq` made, by kind.
    BirthKinds made_by(OpSeq seq) const;
    /// Adds what is in `from`. An unintended origin outranks an intended one; among equals one that is surely there
    /// another, and then the earlier wins.
    void add_kinds(BirthKinds& into, const BirthKinds& from) const;
    /// The earliest infinity that the program did not write on purpose; 0: there is none.
    BirthId unintended_inf(const BirthKinds& kinds) const;

    /// Drops births that nothing in `used` or the ledger refers to, so that memory stays flat over a long run.
    /// Calls `dropped` with each before it goes.
    void sweep(
        std::set<BirthId> used, const Ledger& ledger,
        const std::function<void(const Birth&)>& dropped = [](const Birth&) {});
    bool full() const { return births_.size() >= sweep_at_; }
    /// Births that something went back to and that gave way all the same.
    int64_t forgotten() const { return forgotten_; }

    /// In a forked child: births so far are the parent's too.
    void begin_child() { inherited_ = last_; }
    bool inherited(BirthId id) const { return id <= inherited_; }

    /// The divergence that was reported before this birth was made; null: there is none.
    const Birth* divergence_before(BirthId id) const { return id > diverged ? find(diverged) : nullptr; }

    BirthId bad_loss = 0;  ///< that the value backward() starts from holds, 0 when that is finite
    BirthId diverged = 0;  ///< that escaped and was a divergence: what overflows after it goes back to it
    BirthId poisoned = 0;  ///< that has reached a parameter

  private:
    static constexpr size_t kFewest = 1 << 11;  ///< what is not worth a sweep

    void forget_oldest();

    const StackSource* const stacks_;
    size_t sweep_at_ = kFewest;
    int64_t forgotten_ = 0;
    Births births_;
    BirthId last_ = 0;
    BirthId inherited_ = 0;
    int64_t made_ = 0;
};

}  // namespace numsan
