// The seam between "what a tensor is" and "what is in it". CpuScanner implements it for host memory; a device scanner
// will.
#pragma once

#include "host/base/exponent_counts.h"
#include "host/base/health.h"
#include "host/base/tensor_bytes.h"
#include "host/base/tensor_view.h"

namespace numsan {

/// Runs `work(data, part, parts)` once for every part, at the same time, on threads that the program has already.
/// False: not now, and nothing was run. The calling thread runs one part.
using ShareWork = bool (*)(void (*work)(void* data, int part, int parts), void* data);

/// Looks at tensors where they live. [MT] Every member may be called from any thread. Never throws, never allocates.
/// Both passes read exactly the tensor's own elements: no gap of a strided layout, nothing outside it.
class Scanner {
  public:
    virtual ~Scanner() = default;

    /// The quick pass: reads every element once. `suspicious` is exact for element types with infinities: set if and
    /// only if an element is not finite.
    virtual Range range(const TensorView& tensor) const noexcept = 0;

    /// The quick pass over a large tensor, on several threads if `share` finds some now. The same result.
    virtual Range shared_range(const TensorView& tensor, ShareWork share) const noexcept { return range(tensor); }

    /// Which kinds a bad tensor holds, without counting them.
    virtual KindSet kinds(const TensorView& tensor) const noexcept { return health(tensor).kinds(); }

    /// The exact pass: counts, ranges and the first bad element.
    virtual Health health(const TensorView& tensor) const noexcept = 0;

    /// How many values lie between one power of two and the next; empty where that is not known. Allocates what it
    /// returns: for births alone.
    virtual ExponentCounts exponents(const TensorView& tensor) const noexcept { return {}; }

    /// False: of this tensor health() knows magnitudes only, or nothing.
    virtual bool measures(const TensorView& tensor) const noexcept { return true; }
};

/// The quick pass, over a large tensor on several threads; `share`: null where there are none.
inline Range range_of(const Scanner& scanner, const TensorView& tensor, ShareWork share) noexcept {
    constexpr int64_t kSharedBytes = 1 << 20;
    return share != nullptr && bytes_of(tensor) >= kSharedBytes ? scanner.shared_range(tensor, share)
                                                                : scanner.range(tensor);
}

}  // namespace numsan
