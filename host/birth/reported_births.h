// Ops that hand on what births of a finding made, and nothing else: in a run that has gone bad nearly all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "host/base/output_set.h"
#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"
#include "host/track/op_context.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class ReportedBirths {
  public:
    /// All outlive this.
    ReportedBirths(const Scanner& scanner, Ledger& ledger, const BirthStore& births)
        : scanner_(scanner), ledger_(ledger), births_(births) {}

    /// The births that the op read and handed on to its outputs, each the first of its kind. Empty: something in it
    /// may be new. A birth that is not reported, a value that no op was seen to make, a kind that no operand has, an
    /// output that is finite. `bad`: outputs that are not; `ranges`: of the first `count` outputs. Allocates where
    /// there are more outputs than ever before.
    BirthKinds handed_on(const OpEvent& event, const OpContext& context, OutputSet bad, const Range* ranges,
                         int32_t count);

    /// After handed_on(): output `index` holds them. What its storage holds now; empty for a view of an operand.
    BirthKinds write(const OpEvent& event, int32_t index, const BirthKinds& births, int64_t step);

  private:
    bool read(const TensorView& input, const OpContext& context, bool gone, BirthKinds& births);
    bool are_reported(const BirthKinds& births, const OpContext& context);
    KindSet kinds_in(const TensorView& tensor, const Range& range) const;

    const Scanner& scanner_;
    Ledger& ledger_;
    const BirthStore& births_;
    std::vector<KindSet> kinds_;  ///< of the outputs of one op
    BirthId reported_ = 0;        ///< a birth that this op has asked for already
};

}  // namespace numsan
