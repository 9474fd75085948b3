// One thread's part of the exact pass: counts per class, extremes of the finite values, the first bad element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/bits.cuh"
#include "cuda/kernel/scan_block.cuh"
#include "host/base/health.h"

namespace numsan::gpu {

// Signed numbers as unsigned ones of the same order.
NUMSAN_DEVICE uint64_t ordered(int64_t v) { return static_cast<uint64_t>(v) ^ (uint64_t(1) << 63); }
NUMSAN_DEVICE int64_t from_ordered(uint64_t v) { return static_cast<int64_t>(v ^ (uint64_t(1) << 63)); }

NUMSAN_DEVICE KindSet kind_of(uint64_t bits, const ValueClasses& c) {
    const uint64_t m = bits & c.magnitude_mask;
    if (m > c.largest_number || (c.negative_zero_is_nan && bits == c.magnitude_mask + 1)) return kNaN;
    if (m != c.infinity) return 0;
    return bits > c.magnitude_mask ? kNegInf : kPosInf;
}

/// Adds a part to what several warps, or blocks, gather. One thread.
NUMSAN_DEVICE void merge(TallyWords& all, const TallyWords& part) {
    atomic_add(&all.nan, part.nan);
    atomic_add(&all.pos_inf, part.pos_inf);
    atomic_add(&all.neg_inf, part.neg_inf);
    atomic_add(&all.subnormal, part.subnormal);
    atomic_add(&all.zero, part.zero);
    atomic_max(&all.largest, part.largest);
    atomic_max(&all.smallest_inverted, part.smallest_inverted);
    atomic_max(&all.highest_ordered, part.highest_ordered);
    atomic_max(&all.lowest_inverted, part.lowest_inverted);
    atomic_max(&all.first_bad_inverted, part.first_bad_inverted);
}

/// One thread. Moves what was gathered in memory; what it was gathered in is then at rest.
NUMSAN_DEVICE void take_words(TallyWords& from, TallyWords& to) {
    NUMSAN_NO_UNROLL
    for (uint32_t i = 0; i < sizeof(TallyWords) / sizeof(uint64_t); ++i) {
        (&to.nan)[i] = shared_load(&from.nan + i);
        shared_store(&from.nan + i, uint64_t(0));
    }
}

/// ValueClasses in the width of a lane's registers.
template <class Word>
struct WordClasses {
    Word magnitude_mask, largest_number, infinity, smallest_normal;
    bool negative_zero_is_nan;
    NUMSAN_DEVICE explicit WordClasses(DType dtype) {
        const ValueClasses c = classes_of(dtype);
        magnitude_mask = static_cast<Word>(c.magnitude_mask);
        largest_number = static_cast<Word>(c.largest_number);
        infinity = static_cast<Word>(c.infinity);
        smallest_normal = static_cast<Word>(c.smallest_normal);
        negative_zero_is_nan = c.negative_zero_is_nan;
    }
};

/// There is one type of 64-bit lanes: its classes are constants, and no registers.
template <>
struct WordClasses<uint64_t> {
    static constexpr ValueClasses kClasses = value_classes(kDTypes[int(DType::Float64)]);
    static constexpr uint64_t magnitude_mask = kClasses.magnitude_mask, largest_number = kClasses.largest_number;
    static constexpr uint64_t infinity = kClasses.infinity, smallest_normal = kClasses.smallest_normal;
    static constexpr bool negative_zero_is_nan = false;
    NUMSAN_DEVICE explicit WordClasses(DType) {}
};

/// `Word` is 32 bits wide for lanes of up to 32 bits. A thread sees less than 2^32 lanes of a tensor.
template <class Word>
struct ExactTally {
    using Signed = std::make_signed_t<Word>;
    static constexpr Signed kHighest = static_cast<Signed>(static_cast<Word>(~Word(0)) >> 1);
    static constexpr Signed kLowest = static_cast<Signed>(-kHighest - 1);

    uint32_t nan = 0, pos_inf = 0, neg_inf = 0, subnormal = 0, zero = 0;
    Word smallest_less_one = static_cast<Word>(~Word(0));
    Signed lowest = kHighest, highest = kLowest;

    /// Counts one lane. True when it is not finite: the caller then says where it is.
    NUMSAN_DEVICE bool add(Word bits, const WordClasses<Word>& c) {
        const Word m = bits & c.magnitude_mask;
        const bool negative = bits > c.magnitude_mask;
        const bool is_nan = m > c.largest_number || (c.negative_zero_is_nan && bits == c.magnitude_mask + 1);
        const bool is_inf = m == c.infinity;
        nan += is_nan;
        pos_inf += is_inf && !negative;
        neg_inf += is_inf && negative;
        if (is_nan || is_inf) return true;
        zero += m == 0;
        subnormal += m != 0 && m < c.smallest_normal;
        const Word less_one = static_cast<Word>(m - 1);
        smallest_less_one = less_one < smallest_less_one ? less_one : smallest_less_one;
        const Signed value = negative ? static_cast<Signed>(0 - m) : static_cast<Signed>(m);
        lowest = value < lowest ? value : lowest;
        highest = value > highest ? value : highest;
        return false;
    }

    /// All threads of a warp. Adds their parts to the block's.
    NUMSAN_DEVICE void merge_into(TallyWords& block) const {
        const bool any = lowest <= highest;
        TallyWords warp{};
        warp.nan = warp_sum(nan);
        warp.pos_inf = warp_sum(pos_inf);
        warp.neg_inf = warp_sum(neg_inf);
        warp.subnormal = warp_sum(subnormal);
        warp.zero = warp_sum(zero);
        // Signed magnitudes: the negation does not wrap.
        warp.largest = warp_max(any ? uint64_t(-lowest > highest ? -lowest : highest) : 0);
        const bool only_zeros = smallest_less_one == static_cast<Word>(~Word(0));
        warp.smallest_inverted = warp_max(only_zeros ? 0 : ~uint64_t(smallest_less_one));
        warp.lowest_inverted = warp_max(any ? ~ordered(lowest) : 0);
        warp.highest_ordered = warp_max(any ? ordered(highest) : 0);
        if (warp_leader()) merge(block, warp);
    }
};

NUMSAN_DEVICE void note_bad(TallyWords& block, uint64_t index) {
    if (~index > shared_load(&block.first_bad_inverted)) atomic_max(&block.first_bad_inverted, ~index);
}

}  // namespace numsan::gpu
