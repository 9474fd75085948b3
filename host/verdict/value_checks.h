// Checks that the program makes of its own values, `if isnan(loss): raise`. A value that one has read is reported only
// where the program ended over it, or where the check raised an exception that was caught: a program that just skips a
// batch and trains on knows.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "host/base/ids.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/track/stack_facts.h"
#include "host/verdict/escapes.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class ValueChecks {
  public:
    /// All outlive this.
    ValueChecks(const Lineage& lineage, const Ledger& ledger, BirthStore& births, PendingStore& pending,
                Escapes& escapes)
        : lineage_(lineage), ledger_(ledger), births_(births), pending_(pending), escapes_(escapes) {}

    /// An op reads something bad. Where it returns no values of its own, it may be the first of a check.
    void begin(const OpEvent& event, const OpContext& context);

    /// The program reads a number that is no value of a float type: is it the answer to a question about something bad?
    void answer(const OpEvent& event, const OpContext& context);

    /// An optimizer steps: the program trains on.
    void step() {
        losses_.clear();
        follows_.store(false, std::memory_order_relaxed);
    }

    /// A check has read an answer about something bad, and what runs after it is looked at. [MT]
    bool follows() const noexcept { return follows_.load(std::memory_order_relaxed); }
    /// Where the check was that an op may belong to, and what the op shows of it where that is known by now. None: the
    /// op is another thread's.
    struct Question {
        StackId check = 0;
        std::optional<AfterCheck> shown;
    };
    std::optional<Question> question(const OpEvent& event, const OpContext& context) const;
    /// An op runs while follows(). `asked`: its question, and what StackFacts::after_check() has said, which is asked
    /// under no lock.
    void follow(const Question& asked, const OpEvent& event, const OpContext& context, Outcome& outcome);

    /// The program is over. Whether it failed may be known only later: what is not reported yet is kept.
    void end(bool failed, Outcome& outcome);

  private:
    const Lineage& lineage_;
    const Ledger& ledger_;
    BirthStore& births_;
    PendingStore& pending_;
    Escapes& escapes_;
    static constexpr int kMostFollowed = 64;
    std::atomic<bool> follows_{false};
    /// The answer that was read last, and what the ops after it have shown by now.
    struct Followed {
        OpSeq seq{};
        uint64_t thread = 0;
        StackId stack = 0;
        int ops = 0;
    } followed_;
    std::map<std::pair<StackId, StackId>, AfterCheck> after_check_;
    std::set<OpSeq> losses_;  ///< numbers of the ops that such a check of a loss began with
};

}  // namespace numsan
