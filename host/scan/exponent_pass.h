// Counts values by their power of two: for what a report shows of an operand, not for verdicts.
#pragma once

#include "host/base/exponent_counts.h"
#include "host/base/tensor_view.h"

namespace numsan {

/// Looks at every real lane of a tensor in host memory. Empty where there is nothing to count, or no memory. [MT]
ExponentCounts exponent_counts(const TensorView& tensor) noexcept;

}  // namespace numsan
