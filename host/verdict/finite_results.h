// What is wrong with finite results: zeros that should not be, updates that change nothing, too little headroom.
#pragma once

#include <cstdint>
#include <map>

#include "host/base/ids.h"
#include "host/base/scanner.h"
#include "host/birth/births.h"
#include "host/birth/lost_updates.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/track/op_site.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it. Output `index` of the op is finite in all of these.
class FiniteResults {
  public:
    /// All outlive this.
    FiniteResults(const Scanner& scanner, const Lineage& lineage, Ledger& ledger, BirthStore& store, Births& births,
                  PendingStore& pending)
        : scanner_(scanner),
          lineage_(lineage),
          ledger_(ledger),
          store_(store),
          births_(births),
          pending_(pending),
          lost_updates_(lineage) {}

    /// Follows zeros that should not be: of overflows that were divided by, of values too small for the type. `before`:
    /// the births in the operands.
    void look_at_zeros(const OpEvent& event, const OpContext& context, int32_t index, const BirthKinds& before,
                       const ForwardRecord& forward);

    /// The output is close to the largest number of its 16- or 8-bit type. Once may be a batch out of line: values that
    /// stay there are reported.
    void look_at_headroom(const OpEvent& event, const OpContext& context, int32_t index, const ForwardRecord& forward);

  private:
    void look_at_flushed(const OpEvent& event, const OpContext& context, int32_t index, const ForwardRecord& forward,
                         BirthKinds& now);
    bool averages(const OpEvent& event, const OpContext& context, const TensorView& output) const;

    const Scanner& scanner_;
    const Lineage& lineage_;
    Ledger& ledger_;
    BirthStore& store_;
    Births& births_;
    PendingStore& pending_;
    /// Sites whose results were close to the largest number of their type, and where that was seen.
    struct NearOverflow {
        int64_t last_step = -1;
        OpSeq last_seq = OpSeq::None;
        int steps = 0;
        int looks = 0;
        bool scaled = false;  ///< values are cut to the type's range after a scale: it may follow them
        bool reported = false;
    };
    struct Flush {
        BirthId first = 0;  ///< birth at this site
        OpSeq last_seq = OpSeq::None;
    };
    static constexpr size_t kMostSites = 256;  ///< of either; a site that was not seen for longest gives way
    std::map<OpSite, NearOverflow> near_overflows_;
    /// Where a forward op or a gradient's update flushed, or hardly a bit was left.
    std::map<OpSite, Flush> flushes_;
    LostUpdates lost_updates_;
};

}  // namespace numsan
