// Floating-point instructions of translated PTX, by the bits of their results. Expected values are those of IEEE 754,
// and the PTX ISA's for a NaN of float16 or float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/cuda/ptx/floats.h"
#include "tests/cuda/ptx/machine.h"

namespace numsan::ptx {
namespace floats {
extern const std::vector<Kernel> kernels;
}
namespace {

/// In the order of floats.ptx.
enum Result { Add, Sub, Mul, Fma, Min, Max, Neg, Abs, Div, Sqrt, Reciprocal, Moved = Reciprocal, MovedSingle };

/// The words that a kernel leaves, as numbers of the type.
template <class Number, class... Parameters>
std::vector<Number> launched(const char* name, Dim3 blocks, Dim3 threads, Parameters... values) {
    const auto named = [&](const Kernel& kernel) { return std::strcmp(kernel.name, name) == 0; };
    const auto kernel = std::find_if(floats::kernels.begin(), floats::kernels.end(), named);
    std::vector<Number> results(1024);
    const Number* memory = results.data();
    std::vector<char> parameters(kernel->parameter_bytes);
    size_t i = 0;
    const auto put = [&](const void* value, size_t bytes) {
        EXPECT_EQ(bytes, kernel->parameters[i].bytes);
        std::memcpy(&parameters[kernel->parameters[i++].offset], value, bytes);
    };
    put(&memory, sizeof memory);
    (put(&values, sizeof values), ...);
    EXPECT_EQ(i, kernel->parameters.size());
    const size_t bytes = results.size() * sizeof(Number);
    EXPECT_EQ(run({*kernel, parameters.data(), blocks, threads, 1, 0, {{memory, bytes, true}}}), "");
    return results;
}

std::vector<uint16_t> halves(uint16_t a, uint16_t b, uint16_t c = 0) {
    return launched<uint16_t>("halves", 1, 1, a, b, c);
}
std::vector<uint32_t> singles(float a, float b, float c = 0) { return launched<uint32_t>("singles", 1, 1, a, b, c); }
std::vector<uint64_t> doubles(double a, double b, double c = 0) { return launched<uint64_t>("doubles", 1, 1, a, b, c); }

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kSingleNan = 0x7fffffff;
constexpr uint16_t kHalfNan = 0x7fff, kHalfInfinity = 0x7c00, kHalfOne = 0x3c00, kHalfLargest = 0x7bff;

TEST(FloatingPoint, HalvesEndAt65504) {
    EXPECT_EQ(halves(kHalfLargest, 0x4b80)[Add], kHalfLargest) << "65504 + 15 is nearer to it";
    EXPECT_EQ(halves(kHalfLargest, 0x4c00)[Add], kHalfInfinity) << "65504 + 16 is halfway";
    EXPECT_EQ(halves(0xfbff, kHalfLargest)[Sub], 0xfc00) << "below zero";
    EXPECT_EQ(halves(0x5c00, 0x5c00)[Mul], kHalfInfinity) << "256 times 256";
    EXPECT_EQ(halves(0x5c00, 0x5c00, 0xcc00)[Fma], kHalfInfinity) << "65536 - 16 is halfway";
    EXPECT_EQ(halves(0x5c00, 0x5c00, 0xcc01)[Fma], kHalfLargest) << "65536 - 16.016 is nearer to 65504";
    EXPECT_EQ(halves(0x5c00, 0x5c00, 0xd000)[Fma], kHalfLargest) << "65536 - 32";
}

TEST(FloatingPoint, HalvesAreRoundedToNearestAndToEven) {
    EXPECT_EQ(halves(0x6800, kHalfOne)[Add], 0x6800) << "2048 + 1 is halfway, and 2048 is even";
    EXPECT_EQ(halves(0x6801, kHalfOne)[Add], 0x6802) << "2050 + 1 is halfway, and 2052 is even";
    EXPECT_EQ(halves(0x6800, 0x3c01)[Add], 0x6801) << "2048 + 1.001";
    EXPECT_EQ(halves(kHalfOne, 0x1000)[Add], kHalfOne) << "1 + 2^-11 is halfway";
    EXPECT_EQ(halves(0x3c01, 0x1000)[Sub], kHalfOne) << "1 + 2^-10 - 2^-11 is halfway";
    EXPECT_EQ(halves(0x3fff, 0x1000)[Add], 0x4000) << "digits carry";
}

TEST(FloatingPoint, AFusedProductOfHalvesIsRoundedOnce) {
    EXPECT_EQ(halves(0x6801, 0x4200)[Fma], 0x6e02) << "2050 times 3 is halfway, and 6152 is even";
    EXPECT_EQ(halves(0x6801, 0x4200, 0x8001)[Fma], 0x6e01) << "less the smallest number it is nearer to 6148";
    EXPECT_EQ(halves(0x0001, 0x0001, 0x7800)[Fma], 0x7800) << "2^-48 beside 2^15";
    EXPECT_EQ(halves(0x3c01, 0x3c01, 0xbc02)[Fma], 0x0010) << "2^-20";
}

TEST(FloatingPoint, SmallHalvesAreKept) {
    EXPECT_EQ(halves(0x0001, 0x0001)[Add], 0x0002);
    EXPECT_EQ(halves(0x03ff, 0x0001)[Add], 0x0400) << "the smallest normal number";
    EXPECT_EQ(halves(0x0400, 0x3800)[Mul], 0x0200) << "half of it";
    EXPECT_EQ(halves(0x0001, 0x3800)[Mul], 0x0000) << "2^-25 is halfway, and 0 is even";
    EXPECT_EQ(halves(0x0003, 0x3800)[Mul], 0x0002) << "3 * 2^-25 is halfway";
    EXPECT_EQ(halves(0x8001, 0x3800)[Mul], 0x8000) << "-0";
}

TEST(FloatingPoint, WhatIsNoNumberInHalves) {
    EXPECT_EQ(halves(kHalfInfinity, 0xfc00)[Add], kHalfNan);
    EXPECT_EQ(halves(kHalfInfinity, 0x0000)[Mul], kHalfNan);
    EXPECT_EQ(halves(0x7e01, kHalfOne)[Add], kHalfNan) << "of any NaN";
    EXPECT_EQ(halves(0x7e00, kHalfOne)[Min], kHalfOne);
    EXPECT_EQ(halves(kHalfOne, 0x7e00)[Max], kHalfOne);
    EXPECT_EQ(halves(0x8000, 0x0000)[Min], 0x8000) << "-0 comes before +0";
    EXPECT_EQ(halves(0x8000, 0x0000)[Max], 0x0000);
    EXPECT_EQ(halves(kHalfInfinity, 0)[Neg], 0xfc00);
    EXPECT_EQ(halves(0xfc00, 0)[Abs], kHalfInfinity);
}

TEST(FloatingPoint, SinglesDivideByZero) {
    EXPECT_EQ(singles(1, 0)[Div], 0x7f800000u);
    EXPECT_EQ(singles(1, -0.0f)[Div], 0xff800000u);
    EXPECT_EQ(singles(0, 0)[Div], kSingleNan);
    EXPECT_EQ(singles(1, 3)[Div], 0x3eaaaaabu);
    EXPECT_EQ(singles(-1, 3)[Sqrt], kSingleNan);
    EXPECT_EQ(singles(2, 3)[Sqrt], 0x3fb504f3u);
}

TEST(FloatingPoint, SinglesAreRoundedOnceAndKeptWhereTheyAreSmall) {
    const float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(singles(largest, largest)[Add], 0x7f800000u);
    EXPECT_EQ(singles(largest, std::ldexp(1.0f, 102))[Add], 0x7f7fffffu) << "less than halfway";
    EXPECT_EQ(singles(std::ldexp(1.0f, 24), 1)[Add], 0x4b800000u) << "2^24 + 1 is halfway";
    EXPECT_EQ(singles(smallest, smallest)[Add], 2u);
    EXPECT_EQ(singles(std::numeric_limits<float>::min(), 0.5f)[Mul], 0x00400000u);
    const float above_one = 1 + std::ldexp(1.0f, -23);
    EXPECT_EQ(singles(above_one, above_one, -(1 + std::ldexp(1.0f, -22)))[Fma], 0x28800000u) << "2^-46";
    EXPECT_EQ(singles(kInfinity, kInfinity)[Sub], kSingleNan);
    EXPECT_EQ(singles(kNan, 2)[Max], 0x40000000u);
    EXPECT_EQ(singles(kNan, kNan)[Min], kSingleNan);
    EXPECT_EQ(singles(-2, 1)[Abs], 0x40000000u);
    EXPECT_EQ(singles(-2, 1)[Neg], 0x40000000u);
    EXPECT_EQ(singles(0, 0)[MovedSingle], 0x3fc00000u) << "1.5";
}

TEST(FloatingPoint, AnApproximateReciprocalKnowsNoSmallNumbers) {
    EXPECT_EQ(singles(4, 0)[Reciprocal], 0x3e800000u);
    EXPECT_EQ(singles(std::ldexp(-1.0f, -130), 0)[Reciprocal], 0xff800000u);
    EXPECT_EQ(singles(std::ldexp(1.0f, 127), 0)[Reciprocal], 0u);
}

TEST(FloatingPoint, Doubles) {
    EXPECT_EQ(doubles(1, 3)[Div], 0x3fd5555555555555u);
    EXPECT_EQ(doubles(1, 0)[Div], 0x7ff0000000000000u);
    EXPECT_TRUE(std::isnan(std::bit_cast<double>(doubles(0, 0)[Div])));
    EXPECT_EQ(doubles(0.1, 0.2)[Add], 0x3fd3333333333334u);
    EXPECT_EQ(doubles(1, std::ldexp(1.0, -53))[Add], 0x3ff0000000000000u) << "halfway";
    EXPECT_EQ(doubles(0.1, 10, -1)[Fma], 0x3c90000000000000u) << "2^-54: 0.1 is a little more";
    EXPECT_EQ(doubles(2, 0)[Sqrt], 0x3ff6a09e667f3bcdu);
    EXPECT_EQ(doubles(1e308, 10)[Mul], 0x7ff0000000000000u);
    EXPECT_EQ(doubles(1, 3)[Sub], 0xc000000000000000u);
    EXPECT_EQ(doubles(1, 3)[Max], 0x4008000000000000u);
    EXPECT_EQ(doubles(0, 0)[Moved], 0x3ff8000000000000u) << "1.5";
}

/// Bits: eq ne lt le gt ge num, and equ neu ltu leu gtu geu nan, which hold for what is no number.
uint32_t compared(float a, float b) { return launched<uint32_t>("comparisons", 1, 1, a, b)[0]; }

TEST(FloatingPoint, Comparisons) {
    EXPECT_EQ(compared(1, 2), 0b00011101001110u);
    EXPECT_EQ(compared(2, 1), 0b01100101110010u);
    EXPECT_EQ(compared(0, -0.0f), 0b01010011101001u);
    EXPECT_EQ(compared(kNan, 1), 0b11111110000000u);
    EXPECT_EQ(compared(1, kNan), 0b11111110000000u);
    EXPECT_EQ(compared(kInfinity, kInfinity), 0b01010011101001u);
}

TEST(FloatingPoint, IsConverted) {
    const auto converted = [](float single, double wide) {
        return launched<uint32_t>("to_others", 1, 1, single, wide);
    };
    const std::vector<uint32_t> large = converted(65520, 65519.999);
    EXPECT_EQ(large[0], 0x7bff7c00u) << "float32 in the lower half";
    EXPECT_EQ(large[1], 0x7f800000u) << "an infinity of float16";
    EXPECT_EQ(large[2], 0u);
    EXPECT_EQ(large[3], 0x40effe00u) << "65520 as float64";
    EXPECT_EQ(large[4], std::bit_cast<uint32_t>(65519.999f));
    EXPECT_EQ(large[5] & 0xffff, 0u) << "65504 is not above an infinity";
    // 1 + 2^-11 + 2^-40 would be halfway once it was a float32.
    EXPECT_EQ(converted(1, 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40))[0] >> 16, 0x3c01u);
    EXPECT_EQ(converted(-5.9604645e-8f, 0)[1], 0xb3800000u) << "the smallest float16";
    EXPECT_EQ(converted(1, 1e300)[4], 0x7f800000u);
    EXPECT_EQ(converted(1, 2)[5] & 0xffff, 1u);
    EXPECT_EQ(converted(kNan, 2)[0] & 0xffff, kHalfNan);
}

TEST(FloatingPoint, EveryHalfIsItself) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const double value = value_of(half);
        EXPECT_EQ(bits_of<uint16_t>(value), std::isnan(value) ? kHalfNan : half);
    }
}

TEST(Grid, OfTwoDimensions) {
    const std::vector<uint32_t> places = launched<uint32_t>("places", {3, 2}, {4, 5});
    for (uint32_t i = 0; i < 3 * 2 * 4 * 5; ++i) EXPECT_EQ(places[i], i);
}

}  // namespace
}  // namespace numsan::ptx
