// The quick pass over runs of memory: largest magnitude, smallest non-zero magnitude, and the pattern of negative zero.
#pragma once

#include <cstdint>

#include "host/base/dtype.h"
#include "host/base/health.h"
#include "host/scan/layout.h"

namespace numsan {

/// What the quick pass gathers. `smallest_less_one` wraps: it is all ones (of the lane's width) as long as only zeros
/// were seen.
struct RangeState {
    uint64_t largest = 0;
    uint64_t smallest_less_one = ~uint64_t(0);
    bool negative_zero = false;  ///< gathered for FNUZ types only, where it is NaN
};

inline Range range_of(const DTypeInfo& type, const RangeState& state) {
    const uint64_t smallest = state.smallest_less_one == ~uint64_t(0) ? ~uint64_t(0) : state.smallest_less_one + 1;
    switch (type.infinity) {
        case InfinityKind::FN:
        case InfinityKind::FNU: return {state.largest, smallest, state.largest == type.magnitude_mask()};
        case InfinityKind::FNUZ: return {state.largest, smallest, state.negative_zero};
        default: return {state.largest, smallest, state.largest >= type.exponent_mask()};
    }
}

/// Adds the real lanes of `block` to `state`. Any alignment. Reads exactly those lanes. [MT] on distinct states.
void gather_range(const DTypeInfo& type, const Block& block, RangeState& state) noexcept;

/// The same for `lanes` real lanes that follow each other from `data`.
void gather_range(const DTypeInfo& type, const void* data, int64_t lanes, RangeState& state) noexcept;

/// Of `lanes` real lanes that follow each other from `data`: the way of most tensors, which are small.
Range range_of_run(DType dtype, const void* data, int64_t lanes) noexcept;

}  // namespace numsan
