// How large the values at a finding's place were in the steps before it: what growth looks like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "host/cause/birth.h"
#include "host/track/lineage.h"

namespace numsan {

/// The largest magnitudes of writes, by step.
class StepMagnitudes {
  public:
    /// A write that was not read, or whose step is not known any more or is after `last`, says nothing.
    void add(const Lineage::Record& record, const Lineage& lineage, int64_t last);
    /// Of a whole step; nothing: something was not finite.
    void set(int64_t step, std::optional<double> absmax) { found_[step] = absmax; }
    /// Of the last `steps` of them, oldest first.
    std::vector<PastMagnitude> listed(size_t steps) const;

  private:
    std::map<int64_t, std::optional<double>> found_;
};

/// The largest magnitude of each step, up to the birth's own and at most `steps` of them, oldest first: of the tensor
/// where the op wrote one in place, else of what the same op made at the same line; of a backward birth, of what the
/// forward op made. Read from what `lineage` remembers, which is the last writes of all ops: nothing is kept for it
/// while ops run, and a step with many ops leaves a short history.
std::vector<PastMagnitude> magnitude_history(const Birth& birth, const Lineage& lineage, size_t steps);

/// The same of whatever was written to a storage, as far as it is remembered.
std::vector<PastMagnitude> storage_history(const void* storage, const Lineage& lineage);

}  // namespace numsan
