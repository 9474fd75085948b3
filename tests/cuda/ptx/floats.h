// Floating-point numbers of translated PTX: bits in registers, which C++ computes with by IEEE 754. Subnormal numbers
// are kept, and results are rounded once, to nearest. A NaN that is computed is the one that the PTX ISA names for
// float16 and float32, 0x7fff and 0x7fffffff; of float64 it does not say which: here it is of the same form.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace numsan::ptx {

/// The highest bit of a float16, float32 or float64.
template <class Bits>
inline constexpr Bits sign_of = Bits(Bits(1) << (8 * sizeof(Bits) - 1));

/// float16 is computed with in float64, which holds sums and products of two of them exactly.
inline double value_of(uint16_t bits) {
    const int exponent = bits >> 10 & 31, digits = bits & 1023;
    double size = exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(digits + 1024, exponent - 25);
    if (exponent == 31) size = digits == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
    return (bits & sign_of<uint16_t>) != 0 ? -size : size;
}
inline float value_of(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double value_of(uint64_t bits) { return std::bit_cast<double>(bits); }

inline uint16_t half_of(double value) {
    const uint16_t sign = std::signbit(value) ? sign_of<uint16_t> : uint16_t(0);
    const double size = std::fabs(value);
    if (size >= 65520) return sign | 0x7c00;  // 65504 is the largest, and the next one would be 65536
    if (size < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24)));
    int exponent = 0;
    const auto digits = static_cast<int>(std::nearbyint(std::ldexp(std::frexp(size, &exponent), 11)));
    return sign | static_cast<uint16_t>(((exponent + 14) << 10) + digits - 1024);  // 2048 digits carry
}

template <class Bits, class Value>
Bits bits_of(Value value) {
    if constexpr (sizeof(Bits) == 2) return value != value ? Bits(0x7fff) : half_of(value);
    if constexpr (sizeof(Bits) == 4)
        return value != value ? Bits(0x7fffffff) : std::bit_cast<Bits>(static_cast<float>(value));
    if constexpr (sizeof(Bits) == 8)
        return value != value ? Bits(0x7fffffffffffffff) : std::bit_cast<Bits>(static_cast<double>(value));
}

/// fma
inline uint32_t fused(uint32_t a, uint32_t b, uint32_t c) {
    return bits_of<uint32_t>(std::fma(value_of(a), value_of(b), value_of(c)));
}
inline uint64_t fused(uint64_t a, uint64_t b, uint64_t c) {
    return bits_of<uint64_t>(std::fma(value_of(a), value_of(b), value_of(c)));
}
inline uint16_t fused(uint16_t a, uint16_t b, uint16_t c) {  // float64 rounds the sum only far from where float16 does
    return bits_of<uint16_t>(value_of(a) * value_of(b) + value_of(c));
}

/// min and max: a number rather than a NaN, and -0 before +0.
template <class Bits>
Bits smaller(Bits a, Bits b) {
    const auto x = value_of(a), y = value_of(b);
    if (x != x || y != y) return x == x ? a : bits_of<Bits>(y);
    return x < y || (x == y && std::signbit(x)) ? a : b;
}
template <class Bits>
Bits larger(Bits a, Bits b) {
    const auto x = value_of(a), y = value_of(b);
    if (x != x || y != y) return x == x ? a : bits_of<Bits>(y);
    return x > y || (x == y && !std::signbit(x)) ? a : b;
}

/// rcp.approx.ftz, which may differ in the last bit on a GPU: subnormal numbers are zeros.
inline uint32_t reciprocal(uint32_t bits) {
    const auto flushed = [](float value) {
        return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
    };
    return bits_of<uint32_t>(flushed(1.0f / flushed(value_of(bits))));
}

}  // namespace numsan::ptx
