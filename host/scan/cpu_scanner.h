// Scans tensors in host memory with the calling thread's vector unit.
#pragma once

#include "host/base/scanner.h"

namespace numsan {

/// The Scanner for host memory. No state: one object serves all threads. [MT] Never throws, never allocates.
/// The memory must be readable during the call; a concurrent writer is the caller's business, as for any reader.
/// Data may have any alignment. Views without data or elements give an empty result (Range{0, ~0, false}).
/// Strides may be anything: gaps are not read, stride 0 is read once, overlaps are read once for each dimension that
/// visits them.
class CpuScanner final : public Scanner {
  public:
    /// `suspicious` is exact for all element types. Magnitudes of complex elements are those of their real lanes.
    Range range(const TensorView& tensor) const noexcept override;
    Range shared_range(const TensorView& tensor, ShareWork share) const noexcept override;

    /// See exact_health(): `elements` counts logical elements, the classes count real lanes.
    KindSet kinds(const TensorView& tensor) const noexcept override;
    Health health(const TensorView& tensor) const noexcept override;
    ExponentCounts exponents(const TensorView& tensor) const noexcept override;
};

}  // namespace numsan
