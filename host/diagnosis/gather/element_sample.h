// A few elements of a tensor in the host's memory, the same ones each time.
#pragma once

#include <cmath>
#include <cstdint>

#include "host/base/integer_type.h"
#include "host/base/tensor_view.h"
#include "host/track/elements.h"

namespace numsan {

/// Whether elements of it can be read as real numbers.
inline bool has_elements(const TensorView& t) {
    return (t.flags & kScannable) != 0 && t.data != nullptr && t.numel > 0 && info(t.dtype).lanes == 1;
}

/// Element `index` as a number; NaN where it is not finite.
inline double finite_element(const TensorView& t, int64_t index) {
    bool negative = false;
    const uint64_t magnitude = element_magnitude(t, index, &negative);
    if (magnitude >= value_classes(info(t.dtype)).smallest_nonfinite()) return NAN;
    const double value = decode_magnitude(magnitude, info(t.dtype));
    return negative ? -value : value;
}

/// Position of sample `i` among `numel` elements: all of them in order where there are no more than `most`. Else
/// multiples of the golden ratio, which lie evenly and not at the same place of each row.
constexpr int64_t sample_position(int64_t i, int64_t numel, int64_t most) {
    if (numel <= most) return i;
    const uint64_t part = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ull;
    return static_cast<int64_t>((static_cast<unsigned __int128>(part) * static_cast<uint64_t>(numel)) >> 64);
}

/// Calls visit(number) for at most `most` elements, those that are not finite left out.
template <class Visit>
void each_sampled(const TensorView& t, int64_t most, Visit&& visit) {
    const int64_t count = t.numel < most ? t.numel : most;
    for (int64_t i = 0; i < count; ++i) {
        const double value = finite_element(t, sample_position(i, t.numel, most));
        if (std::isfinite(value)) visit(value);
    }
}

/// Root mean square of such a sample; NaN where nothing of it is finite.
inline double sampled_size(const TensorView& t, int64_t most) {
    double sum = 0;
    int64_t count = 0;
    each_sampled(t, most, [&](double value) {
        sum += value * value;
        ++count;
    });
    return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : NAN;
}

}  // namespace numsan
