// Births that reach nothing that matters, with the option `escape=any`: what becomes of each, reported at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"
#include "host/track/op_context.h"
#include "host/verdict/escapes.h"
#include "host/verdict/loss_scalers.h"
#include "host/verdict/outcome.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it. They are reported at the end: until then a value may still come
/// back, in a backward pass or out of a tensor that the program keeps.
class AbsorbedBirths {
  public:
    /// All outlive this.
    AbsorbedBirths(const Scanner& scanner, Ledger& ledger, BirthStore& births, const PendingStore& pending,
                   const Escapes& escapes, const LossScalers& scalers)
        : scanner_(scanner),
          ledger_(ledger),
          births_(births),
          pending_(pending),
          escapes_(escapes),
          scalers_(scalers) {}

    /// An op has read its operands, and writes its outputs between these two.
    void begin(const OpEvent& event);
    void end(const OpEvent& event, const OpContext& context);
    /// An op has read its operands, and what it made of them is not known.
    void read(const OpEvent& event, const OpContext& context);

    /// Nothing goes back to this birth any more.
    void drop(const Birth& birth);

    /// The program ends. Births that still wait are reported with `last` only.
    void report(bool last, Outcome& outcome);

    /// In a forked child: what was dropped is the parent's to report.
    void begin_child() { dropped_.clear(); }

  private:
    static constexpr size_t kMostPlaces = 1 << 12;

    /// Births of one place, as it is reported.
    struct Group {
        Birth first;
        int64_t times = 0;
    };

    void collect_operands(const OpEvent& event);
    void meet(BirthId id, Fate fate, const OpEvent& event, const OpContext& context);
    Fate fate_of(const Birth& birth, const OpEvent& event);
    bool may_report(const Birth& birth) const;

    const Scanner& scanner_;
    Ledger& ledger_;
    BirthStore& births_;
    const PendingStore& pending_;
    const Escapes& escapes_;
    const LossScalers& scalers_;
    std::set<BirthId> read_;                                ///< that the op has read
    std::vector<std::pair<int32_t, BirthId>> overwritten_;  ///< output that it writes all of, and what that held
    std::map<std::string, Group> dropped_;                  ///< by place
    std::set<BirthId> reported_;
};

}  // namespace numsan
