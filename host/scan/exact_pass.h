// The exact pass: class counts, ranges of the finite values, and the first element that is not finite.
#pragma once

#include "host/base/health.h"
#include "host/base/tensor_view.h"

namespace numsan {

/// Looks at every real lane of `tensor`. `elements` counts logical elements; the class counts count real lanes, so they
/// add up
/// to `elements` times the lanes of an element; a dimension of stride 0 counts once per logical element.
/// `first_bad_bits` is
/// the first lane of that element that is not finite, `first_bad_kind` the kinds of all its lanes. All zero (first_bad
/// -1) when
/// the tensor is empty or has no data. Never throws, never allocates. [MT]
Health exact_health(const TensorView& tensor) noexcept;

}  // namespace numsan
