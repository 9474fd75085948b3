// The verdict on values that stay close to the largest number of their type.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class Headroom : public testing::Test {
  protected:
    Headroom() {
        s.vanishing = true;
        s.context.touched = true;
        s.context.headroom = 0.5;
        s.context.near_overflow = 1;
    }
    void product(int64_t step) {
        s.context.step = step;
        s.op("aten::mm", {a.view(), b.view()}, {large.returned()});
        s.step();
    }
    Stream s;
    MadeUpHalf a{200, -180}, b{200, 150}, large{40000, -27008};
};

TEST_F(Headroom, InThreeStepsIsAWarning) {
    product(0);
    product(1);
    product(1);
    EXPECT_TRUE(s.outcome.escaped.empty()) << "a batch out of line is none";
    product(5);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().severity, Severity::Warning);
    EXPECT_EQ(s.only().into, EscapeInto::Output);
    EXPECT_EQ(s.only().birth.kind, 0);
    EXPECT_TRUE(s.only().birth.near_overflow);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::OVF);
    EXPECT_EQ(s.only().birth.evidence,
              (std::vector<std::string>{
                  "the largest result of mm is 40000, 61 % of the largest float16, 65504, and what it read was not "
                  "bounded",
                  "so it was in 3 steps of this run"}));
    product(6);
    product(7);
    s.finish();
    EXPECT_EQ(s.outcome.escaped.size(), 1u) << "said once";
}

TEST_F(Headroom, WithoutStepsFourTimesIsAWarningAtTheEnd) {
    for (int i = 0; i < 6; ++i) product(0);
    EXPECT_TRUE(s.outcome.escaped.empty());
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.evidence[1], "so it was 4 times in this run");
}

TEST_F(Headroom, ManyTimesInTheFirstOfManyStepsIsNone) {
    for (int i = 0; i < 6; ++i) product(0);
    s.context.near_overflow = 0;
    product(1);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

/// A scale before a cast to the type's limits.
class ScaledCast : public Headroom {
  protected:
    ScaledCast() {
        s.context.touched = false;
        s.op("aten::fill", {}, {scale.returned()});
    }
    void cast(int64_t step, bool cut) {
        s.context.step = step;
        s.op("aten::mul", {(cut ? wide : fitting).view(), scale.view()}, {(cut ? wide : fitting).returned()});
        s.op("aten::clamp", {(cut ? wide : fitting).view()}, {bounded.returned()});
        s.op("aten::_to_copy", {bounded.view()}, {result.returned()});
        s.step();
    }
    MadeUp scale{1}, wide{90000, 80000, 70000, 90000, 80000, 70000, 1, 2}, fitting{65504, 1, 2, 3, 4, 5, 6, 7};
    MadeUp bounded{std::vector<float>(8, 65504)};
    MadeUpHalf result{std::vector<double>(8, 65504)};
};

TEST_F(ScaledCast, EightStepsOnEndAreAWarning) {
    for (int64_t step = 0; step < 7; ++step) cast(step, true);
    EXPECT_TRUE(s.outcome.escaped.empty());
    cast(20, true);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::PREC);
    EXPECT_EQ(s.only().birth.evidence.back(), "so it was in 8 steps of this run");
}

TEST_F(ScaledCast, NoneWhereTheScaleFollows) {
    for (int64_t step = 0; step < 40; ++step) cast(step, step % 8 < 6);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Headroom, NotOfWhatNoParameterTouchedAndNotWhereItIsIgnored) {
    s.context.touched = false;
    for (const int64_t step : {1, 2, 3, 4}) product(step);
    s.context.touched = s.context.ignored = true;
    for (const int64_t step : {5, 6, 7, 8}) product(step);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

}  // namespace
}  // namespace numsan
