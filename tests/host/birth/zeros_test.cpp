// Zeros that are not zeros: of overflows, of values too small for their type, of updates that are lost.
#include "host/birth/zeros.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

Birth overflow(const char* op, double would_be, DType dtype = DType::Float32) {
    Birth birth;
    birth.mechanism = Mechanism::OVF;
    birth.kind = kPosInf;
    birth.features.op = op;
    birth.features.result_estimate = would_be;
    birth.features.dtype = dtype;
    return birth;
}

bool muted_by(const char* op, const Birth& birth) {
    MadeUp x{1}, y{0};
    return mutes(MadeUpOp(op, {x.view()}, {y.returned()}).event(), birth);
}

TEST(Mutes, QuotientThatShouldNotBeZero) {
    const Birth norm = overflow("linalg_vector_norm", 1e20);
    EXPECT_TRUE(muted_by("aten::div", norm));
    EXPECT_TRUE(muted_by("aten::reciprocal", norm));
    EXPECT_TRUE(muted_by("aten::div_", norm));
    EXPECT_FALSE(muted_by("aten::mul", norm)) << "does not divide";
    EXPECT_FALSE(muted_by("aten::atan", norm));
}

TEST(Mutes, NotWhereTheValueIsTooLargeAnyway) {
    EXPECT_FALSE(muted_by("aten::div", overflow("exp", 2.7e43)));
    EXPECT_FALSE(muted_by("aten::div", overflow("exp", 162754, DType::Float16)));
    EXPECT_FALSE(muted_by("aten::div", overflow("mul", 0))) << "not measured";
    EXPECT_TRUE(muted_by("aten::div", overflow("mean", 60000, DType::Float16)));
}

TEST(Mutes, RootOfWhatOverflowed) {
    Birth squares = overflow("sum", 1e40);
    EXPECT_FALSE(muted_by("aten::div", squares));
    EXPECT_TRUE(muted_by("aten::rsqrt", squares));
    squares.through_root = true;
    EXPECT_TRUE(muted_by("aten::div", squares));
    Birth exponential = overflow("exp", 1e43);
    exponential.through_root = true;
    EXPECT_FALSE(muted_by("aten::div", exponential));
    EXPECT_FALSE(muted_by("aten::rsqrt", exponential));
}

TEST(Mutes, OnlyAnOverflow) {
    Birth birth = overflow("div", 5);
    birth.mechanism = Mechanism::DIV0;
    EXPECT_FALSE(muted_by("aten::div", birth));
    EXPECT_FALSE(muted_by("aten::rsqrt", birth));
}

TEST(Zeros, WhoMultipliesAndWhoHandsOn) {
    const auto op = [](const char* name, OpClass op_class = OpClass::Other) {
        return MadeUpOp(name, {}, {}, op_class);
    };
    const MadeUp values{1}, other{2};
    for (const char* name : {"aten::mul", "aten::mul_", "aten::mm", "aten::addmm", "aten::convolution"}) {
        EXPECT_TRUE(multiplies(MadeUpOp(name, {values.view(), other.view()}, {values.view()}).event())) << name;
    }
    const MadeUpOp scaled("aten::mul", {values.view()}, {other.view()});
    EXPECT_FALSE(multiplies(scaled.event())) << "by a number";
    EXPECT_TRUE(hands_zeros_on(scaled.event()));
    EXPECT_FALSE(multiplies(op("aten::add").event()));
    for (const char* name : {"aten::clamp_min", "aten::_to_copy", "aten::neg", "aten::sqrt"}) {
        EXPECT_TRUE(hands_zeros_on(op(name).event())) << name;
    }
    EXPECT_TRUE(hands_zeros_on(op("aten::cat", OpClass::Preserving).event()));
    EXPECT_FALSE(hands_zeros_on(op("aten::add").event()));
    EXPECT_FALSE(hands_zeros_on(op("aten::cos").event()));
}

}  // namespace
}  // namespace numsan
