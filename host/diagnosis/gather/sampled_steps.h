// Which steps are measured: the first ones, and then those whose number is a power of two. A run of n steps has
// 5 + log2(n) of them, so that they cost a share of it that falls.
#pragma once

#include <bit>
#include <cstdint>

namespace numsan {

inline constexpr int64_t kFirstSampled = 8;
inline constexpr int kMostSampled = 48;  ///< the last is step 2^42

constexpr bool is_sampled(int64_t step) noexcept {
    return step >= 0 && (step < kFirstSampled || (step & (step - 1)) == 0) && step < int64_t(1) << (kMostSampled - 5);
}

/// Position of a sampled step among them.
constexpr int sample_of(int64_t step) noexcept {
    return step < kFirstSampled ? static_cast<int>(step) : 5 + std::countr_zero(static_cast<uint64_t>(step));
}

/// The step at such a position.
constexpr int64_t step_of_sample(int sample) noexcept {
    return sample < kFirstSampled ? sample : int64_t(1) << (sample - 5);
}

}  // namespace numsan
