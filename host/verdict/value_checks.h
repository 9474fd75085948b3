// Checks that the program makes of its own values, `if isnan(loss): raise`. A value that one has read is reported only
// where the program ended over it: a program that skips a batch and trains on knows.
#pragma once

#include <cstdint>
#include <set>

#include "host/birth/births.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/verdict/escapes.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class ValueChecks {
  public:
    /// All outlive this.
    ValueChecks(const Lineage& lineage, const Ledger& ledger, Births& births, PendingStore& pending, Escapes& escapes)
        : lineage_(lineage), ledger_(ledger), births_(births), pending_(pending), escapes_(escapes) {}

    /// An op that reads something bad (`before`) and returns no values of its own may be the first of a check.
    void begin(const OpEvent& event, const OpContext& context, const BirthKinds& before);

    /// The program reads a number that is no value of a float type: is it the answer to a question about something bad?
    void answer(const OpEvent& event, const OpContext& context);

    /// An optimizer steps: the program trains on.
    void step() { losses_.clear(); }

    /// The program is over. Whether it failed may be known only later: what is not reported yet is kept.
    void end(bool failed, Outcome& outcome);

  private:
    const Lineage& lineage_;
    const Ledger& ledger_;
    Births& births_;
    PendingStore& pending_;
    Escapes& escapes_;
    std::set<int64_t> losses_;  ///< numbers of the ops that such a check of a loss began with
};

}  // namespace numsan
