// Where magnitudes lie on the line of a type.
#include "host/format/html/number_line.h"

#include <gtest/gtest.h>

namespace numsan::html {
namespace {

TEST(NumberLine, EndsAreTheTypesOwn) {
    const auto half = NumberLine::of("float16");
    ASSERT_TRUE(half.has_value());
    EXPECT_EQ(half->largest(), 65504);
    EXPECT_DOUBLE_EQ(half->smallest_normal(), 6.103515625e-05);
    EXPECT_DOUBLE_EQ(half->smallest(), 5.9604644775390625e-08);
    EXPECT_EQ(half->place(65504), 100);
    EXPECT_EQ(half->place(half->smallest()), 0);
    EXPECT_NEAR(half->place(1), 60, 0.1) << "24 of 40 powers of two";
    EXPECT_EQ(half->place(1e30), 100);
    EXPECT_EQ(half->place(1e-30), 0);
}

TEST(NumberLine, NoTypeOfThatName) {
    EXPECT_FALSE(NumberLine::of("int64").has_value());
    EXPECT_FALSE(NumberLine::of("").has_value());
    EXPECT_EQ(NumberLine::of("float8_e8m0fnu")->smallest(), NumberLine::of("float8_e8m0fnu")->smallest_normal());
}

TEST(NumberLine, Percent) { EXPECT_EQ(percent(12.345), "12.35%"); }

}  // namespace
}  // namespace numsan::html
