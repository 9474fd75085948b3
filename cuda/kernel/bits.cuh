// The quick pass on bit patterns, one thread's registers: m = bits without the sign, max(m), min(m - 1) with wrap, so
// that zero drops out. No floating arithmetic.
#pragma once

#include <bit>
#include <cstdint>

#include "cuda/kernel/target.cuh"
#include "host/base/value_classes.h"

namespace numsan::gpu {

/// How real lanes are packed in memory; all that the quick pass needs to know of an element type.
enum class LaneKind : uint8_t { Bits8, Bits8Fnuz, Bits8Unsigned, Bits16, Bits32, Bits64 };

/// What the quick pass knows of a tensor, or of a part of it.
struct RangeWords {
    uint64_t largest;
    uint64_t smallest_inverted;  ///< ~(smallest non-zero magnitude - 1); 0: only zeros
    uint32_t negative_zero;      ///< FNUZ only, where it is NaN
};

struct MergeRange {
    NUMSAN_DEVICE RangeWords operator()(const RangeWords& a, const RangeWords& b) const {
        return RangeWords{a.largest > b.largest ? a.largest : b.largest,
                          a.smallest_inverted > b.smallest_inverted ? a.smallest_inverted : b.smallest_inverted,
                          a.negative_zero | b.negative_zero};
    }
};

// Packed integer minima and maxima are one instruction from compute capability 9.0 on, and many before.
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kPackedByDefault = false;
#else
inline constexpr bool kPackedByDefault = true;
#endif

#if defined(__CUDACC__)
NUMSAN_DEVICE uint32_t max3(uint32_t a, uint32_t b, uint32_t c) { return __vimax3_u32(a, b, c); }
NUMSAN_DEVICE uint32_t add_min(uint32_t a, uint32_t addend, uint32_t c) { return __viaddmin_u32(a, addend, c); }
NUMSAN_DEVICE uint32_t max3_x2(uint32_t a, uint32_t b, uint32_t c) { return __vimax3_u16x2(a, b, c); }
NUMSAN_DEVICE uint32_t add_min_x2(uint32_t a, uint32_t addend, uint32_t c) { return __viaddmin_u16x2(a, addend, c); }
#else
inline uint32_t max3(uint32_t a, uint32_t b, uint32_t c) { return (a > b ? a : b) > c ? (a > b ? a : b) : c; }
inline uint32_t add_min(uint32_t a, uint32_t addend, uint32_t c) { return a + addend < c ? a + addend : c; }
template <class Operation>
uint32_t each_half(uint32_t a, uint32_t b, uint32_t c, Operation operation) {
    const uint32_t low = uint16_t(operation(uint16_t(a), uint16_t(b), uint16_t(c)));
    const uint32_t high = uint16_t(operation(uint16_t(a >> 16), uint16_t(b >> 16), uint16_t(c >> 16)));
    return low | high << 16;
}
inline uint32_t max3_x2(uint32_t a, uint32_t b, uint32_t c) {
    return each_half(a, b, c, [](uint32_t x, uint32_t y, uint32_t z) { return max3(x, y, z); });
}
inline uint32_t add_min_x2(uint32_t a, uint32_t addend, uint32_t c) {
    return each_half(a, addend, c, [](uint32_t x, uint32_t y, uint32_t z) { return add_min(uint16_t(x + y), 0, z); });
}
#endif

/// Two 16-bit lanes of a word. A byte may stand in the upper half of its lane, with zeros below: m - 1 then borrows
/// from it, and its upper half is the byte's m - 1 all the same.
template <bool kPacked>
struct HalfWords {
    uint32_t largest = 0;
    uint32_t smallest = ~0u;

    NUMSAN_DEVICE void add(uint32_t m0, uint32_t m1) {
        largest = max3_x2(largest, m0, m1);
        smallest = add_min_x2(m0, ~0u, smallest);
        smallest = add_min_x2(m1, ~0u, smallest);
    }
    NUMSAN_DEVICE uint32_t largest_lane() const {
        return (largest & 0xFFFFu) > (largest >> 16) ? largest & 0xFFFFu : largest >> 16;
    }
    NUMSAN_DEVICE uint32_t smallest_lane() const {
        return (smallest & 0xFFFFu) < (smallest >> 16) ? smallest & 0xFFFFu : smallest >> 16;
    }
};

// Without packed instructions: the upper lane decides the order of whole words, so it needs no mask of its own.
template <>
struct HalfWords<false> {
    uint32_t largest_low = 0, largest_high = 0;
    uint32_t smallest_low = ~0u, smallest_high = ~0u;

    NUMSAN_DEVICE void add(uint32_t m0, uint32_t m1) {
        const uint32_t low0 = m0 & 0xFFFFu, low1 = m1 & 0xFFFFu;
        largest_low = max3(largest_low, low0, low1);
        largest_high = max3(largest_high, m0, m1);
        smallest_low = add_min(low1, ~0u, add_min(low0, ~0u, smallest_low));
        smallest_high = add_min(m1, 0u - 0x10000u, add_min(m0, 0u - 0x10000u, smallest_high));
    }
    NUMSAN_DEVICE uint32_t largest_lane() const {
        return largest_low > (largest_high >> 16) ? largest_low : largest_high >> 16;
    }
    NUMSAN_DEVICE uint32_t smallest_lane() const {
        const uint32_t low = smallest_low & 0xFFFFu;
        return low < (smallest_high >> 16) ? low : smallest_high >> 16;
    }
};

/// One thread's registers of the quick pass. Words that do not exist are given as zero, which changes nothing.
template <LaneKind kKind, bool kPacked = kPackedByDefault>
struct RangeTally;

// `smallest_less_one` above that of every magnitude: only zeros were seen.
NUMSAN_DEVICE RangeWords range_words(uint64_t largest, uint64_t smallest_less_one, uint64_t highest_less_one) {
    return RangeWords{largest, smallest_less_one > highest_less_one ? 0 : ~smallest_less_one, 0};
}

template <bool kPacked>
struct RangeTally<LaneKind::Bits16, kPacked> {
    HalfWords<kPacked> halves;
    NUMSAN_DEVICE void add(uint32_t w0, uint32_t w1) { halves.add(w0 & 0x7FFF7FFFu, w1 & 0x7FFF7FFFu); }
    NUMSAN_DEVICE RangeWords words() const {
        return range_words(halves.largest_lane(), halves.smallest_lane(), 0x7FFF);
    }
};

template <bool kPacked, uint32_t kMask>
struct ByteTally {
    HalfWords<kPacked> even;
    HalfWords<kPacked> odd;
    NUMSAN_DEVICE void add(uint32_t w0, uint32_t w1) {
        even.add(w0 & kMask * 0x00010001u, w1 & kMask * 0x00010001u);
        odd.add(w0 & kMask * 0x01000100u, w1 & kMask * 0x01000100u);
    }
    NUMSAN_DEVICE RangeWords words() const {
        const uint32_t large = odd.largest_lane() >> 8, small = odd.smallest_lane() >> 8;
        return range_words(even.largest_lane() > large ? even.largest_lane() : large,
                           even.smallest_lane() < small ? even.smallest_lane() : small, kMask - 1);
    }
};

template <bool kPacked>
struct RangeTally<LaneKind::Bits8, kPacked> : ByteTally<kPacked, 0x7F> {};

template <bool kPacked>
struct RangeTally<LaneKind::Bits8Unsigned, kPacked> : ByteTally<kPacked, 0xFF> {};

template <bool kPacked>
struct RangeTally<LaneKind::Bits8Fnuz, kPacked> {
    RangeTally<LaneKind::Bits8, kPacked> range;
    uint32_t numbers = ~0u;  // top bit of a byte is gone once negative zero was seen there
    NUMSAN_DEVICE void add(uint32_t w0, uint32_t w1) {
        range.add(w0, w1);
        numbers &= not_negative_zero(w0) & not_negative_zero(w1);
    }
    // The sum stays inside its byte; its top bit is set unless the magnitude is 0, and ~w has it unless the sign is
    // set.
    NUMSAN_DEVICE static uint32_t not_negative_zero(uint32_t w) { return ((w & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | ~w; }
    NUMSAN_DEVICE RangeWords words() const {
        RangeWords words = range.words();
        words.negative_zero = (~numbers & 0x80808080u) != 0;
        return words;
    }
};

template <bool kPacked>
struct RangeTally<LaneKind::Bits32, kPacked> {
    uint32_t largest = 0;
    uint32_t smallest = ~0u;
    NUMSAN_DEVICE void add(uint32_t w0, uint32_t w1) {
        const uint32_t m0 = w0 & 0x7FFFFFFFu, m1 = w1 & 0x7FFFFFFFu;
        largest = max3(largest, m0, m1);
        smallest = add_min(m1, ~0u, add_min(m0, ~0u, smallest));
    }
    NUMSAN_DEVICE RangeWords words() const { return range_words(largest, smallest, 0x7FFFFFFFu); }
};

template <bool kPacked>
struct RangeTally<LaneKind::Bits64, kPacked> {
    uint64_t largest = 0;
    uint64_t smallest = ~uint64_t(0);
    NUMSAN_DEVICE void add(uint32_t w0, uint32_t w1) {  // lower and upper half of one lane
        const uint64_t m = (uint64_t(w1 & 0x7FFFFFFFu) << 32) | w0;
        largest = m > largest ? m : largest;
        smallest = m - 1 < smallest ? m - 1 : smallest;
    }
    NUMSAN_DEVICE RangeWords words() const { return range_words(largest, smallest, ~uint64_t(0) >> 1); }
};

template <class Tally>
NUMSAN_DEVICE void add_packet(Tally& tally, const Packet& v) {
    tally.add(v.x, v.y);
    tally.add(v.z, v.w);
}

constexpr LaneKind lane_kind_of(const DTypeInfo& type) {
    switch (type.lane_bytes) {
        case 8: return LaneKind::Bits64;
        case 4: return LaneKind::Bits32;
        case 2: return LaneKind::Bits16;
        default: break;
    }
    switch (type.infinity) {
        case InfinityKind::FNUZ: return LaneKind::Bits8Fnuz;
        case InfinityKind::FNU: return LaneKind::Bits8Unsigned;
        default: return LaneKind::Bits8;
    }
}

// The device has no table of types in memory. What is small is the digits of one constant, a digit a type.
template <class Digit>
constexpr uint64_t digits_of_types(uint32_t bits, Digit digit) {
    uint64_t digits = 0;
    for (uint32_t type = 0; type < kDTypeCount; ++type) digits |= uint64_t(digit(kDTypes[type])) << (bits * type);
    return digits;
}
inline constexpr uint32_t kKindBits = 3, kSizeBits = 2;  // of a digit
static_assert(kDTypeCount * kKindBits <= 64 && uint32_t(LaneKind::Bits64) < 1u << kKindBits);

NUMSAN_DEVICE LaneKind lane_kind(DType dtype) {
    constexpr uint64_t kKinds = digits_of_types(kKindBits, lane_kind_of);
    return static_cast<LaneKind>(kKinds >> (kKindBits * static_cast<uint32_t>(dtype)) & ((1u << kKindBits) - 1));
}

struct ElementShape {
    uint32_t lane_bytes;
    uint32_t lanes;
};

NUMSAN_DEVICE ElementShape element_shape(DType dtype) {
    constexpr auto kSizes = static_cast<uint32_t>(
        digits_of_types(kSizeBits, [](const DTypeInfo& type) { return std::countr_zero(uint32_t(type.lane_bytes)); }));
    constexpr auto kPairs =
        static_cast<uint32_t>(digits_of_types(1, [](const DTypeInfo& type) { return type.lanes - 1; }));
    const auto type = static_cast<uint32_t>(dtype);
    return ElementShape{1u << (kSizes >> (kSizeBits * type) & ((1u << kSizeBits) - 1)), 1 + (kPairs >> type & 1)};
}
static_assert(kDTypeCount * kSizeBits <= 32);

// Here each row of the table becomes a constant of a switch.
// NOLINTBEGIN(bugprone-branch-clone)
NUMSAN_DEVICE ValueClasses classes_of(DType dtype) {
    switch (dtype) {
#define NUMSAN_DTYPE(id, name, bytes, lanes, exp, man, bias, inf)                 \
    case DType::id: {                                                             \
        constexpr ValueClasses kClasses = value_classes(kDTypes[int(DType::id)]); \
        return kClasses;                                                          \
    }
#include "host/base/dtype.def"
#undef NUMSAN_DTYPE
    }
    return ValueClasses{};
}

// NOLINTEND(bugprone-branch-clone)

/// Whether a tensor with these words holds a value that is not finite. Exact for every type.
NUMSAN_DEVICE bool has_nonfinite(const RangeWords& words, DType dtype) {
    return words.largest >= classes_of(dtype).smallest_nonfinite() || words.negative_zero != 0;
}

}  // namespace numsan::gpu
