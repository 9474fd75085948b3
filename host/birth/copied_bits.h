// Births in memory that an op copies as integers: copy.deepcopy() and Storage.clone() copy the bytes of floats.
#pragma once

#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class CopiedBits {
  public:
    /// Both outlive this.
    CopiedBits(Ledger& ledger, const BirthStore& births) : ledger_(ledger), births_(births) {}

    /// An op has written `output`, which holds no floats. Where it copied elements without changing them, the memory
    /// holds as floats what its operands' memory does. It is sure only where all of a storage is copied into another
    /// as large.
    void write(const OpEvent& event, const TensorView& output, int64_t step);

  private:
    BirthKinds handed_on(const OpEvent& event, const TensorView& output);

    Ledger& ledger_;
    const BirthStore& births_;
};

}  // namespace numsan
