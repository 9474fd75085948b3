// What a loss scaler catches is its to deal with, until it is plain that it cannot.
#pragma once

#include <map>
#include <string>

#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/track/scaler_history.h"
#include "host/track/stack_facts.h"
#include "host/verdict/escapes.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class LossScalers {
  public:
    /// All outlive this.
    LossScalers(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage, Ledger& ledger,
                BirthStore& births, PendingStore& pending, Escapes& escapes)
        : scanner_(scanner),
          stacks_(stacks),
          lineage_(lineage),
          ledger_(ledger),
          births_(births),
          pending_(pending),
          escapes_(escapes) {}

    /// An op of a loss scaler: it unscales gradients and notes whether one is bad, or it changes the scale.
    void op(const OpEvent& event, int64_t step, Outcome& outcome);

    /// Whether the value would come about at any scale. Only what is certain counts: an overflow of what was scaled
    /// would not.
    bool comes_at_any_scale(const Birth& birth) const;

    /// The end of the run: reports what a scaler skipped that never let a step pass.
    void end(Outcome& outcome);

    int64_t skips() const { return skips_; }                                      ///< of steps, by all scalers
    const std::vector<int64_t>& skipped_steps() const { return skipped_steps_; }  ///< the first of them

  private:
    static constexpr size_t kMostSteps = 256;

    void looks(const OpEvent& event);
    void scale_changes(const OpEvent& event, int64_t step, Outcome& outcome);
    /// Reports what was held back for this scaler: all of it, or what no scale avoids.
    void give_up(const void* scaler, const std::string& why, Outcome& outcome, bool all = false);

    const Scanner& scanner_;
    const StackFacts& stacks_;
    const Lineage& lineage_;
    Ledger& ledger_;
    BirthStore& births_;
    PendingStore& pending_;
    Escapes& escapes_;
    struct Scaler {
        ScalerHistory history;
        int64_t last = 0;  ///< which of all updates of scales was its last
    };
    std::map<const void*, Scaler> scalers_;  ///< by where the scale lies; the one that was not updated for longest goes
    std::map<const void*, bool> looks_;      ///< of scalers, by where they note it: whether something was bad
    int64_t updates_ = 0;
    int64_t skips_ = 0;
    std::vector<int64_t> skipped_steps_;
};

}  // namespace numsan
