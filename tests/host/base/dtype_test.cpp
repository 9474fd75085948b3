// The table of element types against figures that the formats' definitions and the language give.
#include "host/base/dtype.h"

#include <gtest/gtest.h>

#include <limits>

namespace numsan {
namespace {

TEST(DType, MasksCoverALane) {
    for (const DTypeInfo& t : kDTypes) {
        EXPECT_EQ((t.has_zero() ? 1 : 0) + t.exponent_bits + t.mantissa_bits, t.lane_bytes * 8) << t.name;
        EXPECT_EQ(t.exponent_mask() & t.mantissa_mask(), 0u) << t.name;
        EXPECT_EQ(t.sign_mask(), uint64_t(1) << (t.lane_bytes * 8 - (t.has_zero() ? 1 : 0))) << t.name;
        EXPECT_EQ(t.sign_mask() & t.magnitude_mask(), 0u) << t.name;
    }
}

TEST(DType, NativeTypesAgreeWithTheLanguage) {
    EXPECT_EQ(info(DType::Float32).mantissa_bits + 1, std::numeric_limits<float>::digits);
    EXPECT_EQ(info(DType::Float32).bias, std::numeric_limits<float>::max_exponent - 1);
    EXPECT_EQ(info(DType::Float64).mantissa_bits + 1, std::numeric_limits<double>::digits);
    EXPECT_EQ(info(DType::Float64).bias, std::numeric_limits<double>::max_exponent - 1);
}

TEST(DType, OnlyScalesHaveNoZero) {
    for (const DTypeInfo& t : kDTypes) EXPECT_EQ(t.has_zero(), &t != &info(DType::Float8E8M0Fnu)) << t.name;
}

TEST(DType, ComplexHasTwoLanes) {
    EXPECT_EQ(info(DType::Complex32).element_bytes(), 4u);
    EXPECT_EQ(info(DType::Complex64).element_bytes(), 8u);
    EXPECT_EQ(info(DType::Complex128).element_bytes(), 16u);
    EXPECT_EQ(info(DType::BFloat16).lanes, 1);
}

TEST(DType, IsFoundByItsName) {
    for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(dtype_of(kDTypes[i].name), static_cast<DType>(i));
    EXPECT_EQ(dtype_of("int64"), std::nullopt);
    EXPECT_EQ(dtype_of(""), std::nullopt);
}

}  // namespace
}  // namespace numsan
