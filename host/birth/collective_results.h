// Results of collectives, which run on by themselves: their values are there when they are read.
#pragma once

#include <cstdint>

#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class CollectiveResults {
  public:
    /// All outlive this.
    CollectiveResults(const Scanner& scanner, const Lineage& lineage, Ledger& ledger)
        : scanner_(scanner), lineage_(lineage), ledger_(ledger) {}

    /// The ledger takes down for each output what was sent; `before`: the births in the operands.
    void receive(const OpEvent& event, const OpContext& context, const BirthKinds& before);

  private:
    double sent(const TensorView& operand) const;

    const Scanner& scanner_;
    const Lineage& lineage_;
    Ledger& ledger_;
};

}  // namespace numsan
