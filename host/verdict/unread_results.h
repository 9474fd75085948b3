// Outputs that were not read: what they may hold follows from the op and its operands.
#pragma once

#include <cstdint>

#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it. It is sure only where the op keeps a value (OpTraits::kept): a
/// clamp may have cured it.
class UnreadResults {
  public:
    /// All outlive this.
    UnreadResults(const Scanner& scanner, Ledger& ledger, const BirthStore& births)
        : scanner_(scanner), ledger_(ledger), births_(births) {}

    /// What output `index` may hold of what its operands may.
    BirthKinds handed_on(const OpEvent& event, int32_t index);
    /// Of what the storage of output `index` held before the op wrote a part of it.
    BirthKinds left_beside(const OpEvent& event, int32_t index);

  private:
    const Scanner& scanner_;
    Ledger& ledger_;
    const BirthStore& births_;
};

}  // namespace numsan
