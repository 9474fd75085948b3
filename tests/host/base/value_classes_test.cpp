// Magnitudes to values and back.
#include "host/base/value_classes.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>

namespace numsan {
namespace {

void expect_round_trip(uint64_t pattern, const DTypeInfo& type) {
    const double value = decode_magnitude(pattern, type);
    ASSERT_GT(value, 0) << type.name << " " << pattern;
    ASSERT_EQ(encode_magnitude(value, type), pattern) << type.name << " " << value;
}

TEST(Magnitudes, EveryNumberOfTheNarrowTypesComesBack) {
    for (const DTypeInfo& type : kDTypes) {
        if (type.lane_bytes > 2) continue;
        const uint64_t largest = value_classes(type).largest_number;
        for (uint64_t pattern = type.has_zero() ? 1 : 0; pattern <= largest; ++pattern)
            expect_round_trip(pattern, type);
    }
}

TEST(Magnitudes, NumbersOfTheWideTypesComeBack) {
    std::mt19937_64 random(1);
    for (const DType dtype : {DType::Float32, DType::Float64}) {
        const DTypeInfo& type = info(dtype);
        const uint64_t largest = value_classes(type).infinity - 1;
        for (const uint64_t edge : {uint64_t(1), type.mantissa_mask(), type.mantissa_mask() + 1, largest})
            expect_round_trip(edge, type);
        for (int i = 0; i < 10000; ++i) expect_round_trip(1 + random() % largest, type);
    }
}

}  // namespace
}  // namespace numsan
