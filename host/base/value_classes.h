// What the bit pattern of a real number means: its class by its magnitude, and its value. Depends on dtype.h alone.
#pragma once

#include <cmath>
#include <cstdint>

#include "host/base/dtype.h"

namespace numsan {

/// Classes by magnitude (the pattern without its sign): above `largest_number` is NaN, equal to `infinity` is infinite.
/// A type without infinities has an `infinity` that no magnitude equals.
struct ValueClasses {
    uint64_t magnitude_mask;
    uint64_t largest_number;
    uint64_t infinity;
    uint64_t smallest_normal;
    bool negative_zero_is_nan;

    /// Magnitudes from here on are not finite. Beyond every magnitude for FNUZ types.
    constexpr uint64_t smallest_nonfinite() const { return infinity <= largest_number ? infinity : largest_number + 1; }
};

constexpr ValueClasses value_classes(const DTypeInfo& type) {
    const uint64_t mask = type.magnitude_mask(), unreachable = mask + 1, normal = type.mantissa_mask() + 1;
    switch (type.infinity) {
        case InfinityKind::FN: return ValueClasses{mask, mask - 1, unreachable, normal, false};
        case InfinityKind::FNUZ: return ValueClasses{mask, mask, unreachable, normal, true};
        case InfinityKind::FNU: return ValueClasses{mask, mask - 1, unreachable, 0, false};
        default: return ValueClasses{mask, type.exponent_mask(), type.exponent_mask(), normal, false};
    }
}

/// The value of a finite magnitude.
inline double decode_magnitude(uint64_t magnitude, const DTypeInfo& type) {
    const int exponent = static_cast<int>(magnitude >> type.mantissa_bits);
    const uint64_t mantissa = magnitude & type.mantissa_mask();
    const bool subnormal = exponent == 0 && type.has_zero();
    const int scale = (subnormal ? 1 : exponent) - int(type.bias) - int(type.mantissa_bits);
    const uint64_t significand = subnormal ? mantissa : mantissa | (type.mantissa_mask() + 1);
    return std::ldexp(static_cast<double>(significand), scale);
}

/// The same of a pattern with its sign, which is dropped.
inline double magnitude_value(uint64_t pattern, DType dtype) {
    return decode_magnitude(pattern & info(dtype).magnitude_mask(), info(dtype));
}

/// Largest finite value of a type.
inline uint64_t largest_pattern(DType dtype) { return value_classes(info(dtype)).smallest_nonfinite() - 1; }
inline double largest_value(DType dtype) { return decode_magnitude(largest_pattern(dtype), info(dtype)); }

/// The pattern of a positive number that the type holds.
inline uint64_t encode_magnitude(double value, const DTypeInfo& type) {
    const int lowest = (type.has_zero() ? 1 : 0) - int(type.bias);
    const int exponent = std::ilogb(value) > lowest ? std::ilogb(value) : lowest;
    const auto significand = static_cast<uint64_t>(std::ldexp(value, int(type.mantissa_bits) - exponent));
    // A normal number's leading one counts as one step of the exponent.
    return (static_cast<uint64_t>(exponent + int(type.bias)) << type.mantissa_bits) + significand -
           (type.mantissa_mask() + 1);
}

/// The value of a finite pattern given as a signed magnitude.
inline double decode_signed_magnitude(int64_t value, const DTypeInfo& type) {
    return value < 0 ? -decode_magnitude(uint64_t(0) - uint64_t(value), type) : decode_magnitude(uint64_t(value), type);
}

}  // namespace numsan
