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
    for (const char* name : {"aten::mul", "aten::mul_", "aten::mm", "aten::addmm", "aten::convolution"}) {
        EXPECT_TRUE(multiplies(op(name).event())) << name;
    }
    EXPECT_FALSE(multiplies(op("aten::add").event()));
    for (const char* name : {"aten::clamp_min", "aten::_to_copy", "aten::neg", "aten::sqrt"}) {
        EXPECT_TRUE(hands_zeros_on(op(name).event())) << name;
    }
    EXPECT_TRUE(hands_zeros_on(op("aten::cat", OpClass::Preserving).event()));
    EXPECT_FALSE(hands_zeros_on(op("aten::add").event()));
    EXPECT_FALSE(hands_zeros_on(op("aten::cos").event()));
}

/// Eight weights of 1 in bfloat16, whose last place is 2^-7: half of it is 0.0039.
class LostUpdates : public testing::Test {
  protected:
    static MadeUpHalf vector_of(double value, size_t n = 8, DType dtype = DType::BFloat16) {
        return MadeUpHalf(std::vector<double>(n, value), 0, dtype);
    }
    static std::optional<std::string> lost(const char* op, std::vector<TensorView> inputs,
                                           std::vector<double> scalars = {}) {
        const TensorView weight = inputs[0];
        return lost_updates(MadeUpOp(op, std::move(inputs), {weight}, OpClass::Other, std::move(scalars)).event(), 0);
    }
    MadeUpHalf weight{std::vector<double>(8, 1), kParameter, DType::BFloat16};
};

TEST_F(LostUpdates, BelowHalfOfTheLastPlace) {
    const MadeUpHalf gradient = vector_of(0.25);
    EXPECT_EQ(lost("aten::add_", {weight.view(), gradient.view()}, {-0.001}),
              "8 of 8 updates looked at are below half of the last place of the bfloat16 weight they are added to, the "
              "largest "
              "0.00025: they change nothing");
    EXPECT_FALSE(lost("aten::add_", {weight.view(), gradient.view()}, {-0.1}));
    EXPECT_FALSE(lost("aten::add_", {weight.view(), gradient.view()})) << "a factor of one";
    EXPECT_TRUE(lost("aten::sub_", {weight.view(), gradient.view()}, {0.001}));
    EXPECT_FALSE(lost("aten::mul_", {weight.view(), gradient.view()}, {0.001})) << "decay is no update";
}

TEST_F(LostUpdates, QuotientOfMoments) {
    const MadeUpHalf mean = vector_of(0.25), deviation = vector_of(0.25), small = vector_of(0.0009765625);
    EXPECT_TRUE(lost("aten::addcdiv_", {weight.view(), mean.view(), deviation.view()}, {-0.001}));
    EXPECT_FALSE(lost("aten::addcdiv_", {weight.view(), mean.view(), small.view()}, {-0.001}));
}

TEST_F(LostUpdates, AverageThatDoesNotFollow) {
    const MadeUpHalf close = vector_of(1.25), same = vector_of(1);
    EXPECT_TRUE(lost("aten::lerp_", {weight.view(), close.view()}, {0.001}));
    EXPECT_FALSE(lost("aten::lerp_", {weight.view(), close.view()}, {0.1}));
    EXPECT_FALSE(lost("aten::lerp_", {weight.view(), same.view()}, {0.001})) << "it is there already";
    EXPECT_FALSE(lost("aten::lerp_", {weight.view(), close.view(), same.view()})) << "weights of its own";
}

TEST_F(LostUpdates, FusedAdam) {
    const MadeUpHalf gradient = vector_of(0.25), mean = vector_of(0.25), square = vector_of(0.0625);
    MadeUp steps{1000};
    const auto adam = [&](double rate) {
        // rate, two decays of averages, decay of weights, eps, amsgrad, maximize
        return lost("aten::_fused_adamw_", {weight.view(), gradient.view(), mean.view(), square.view(), steps.view()},
                    {rate, 0.9, 0.999, 0.01, 1e-8, 0, 0});
    };
    EXPECT_TRUE(adam(1e-4));
    EXPECT_FALSE(adam(1e-2));
    EXPECT_FALSE(
        lost("aten::_fused_adamw_", {weight.view(), gradient.view(), mean.view()}, {1e-4, 0.9, 0.999, 0, 1e-8}));
}

TEST_F(LostUpdates, FusedSgd) {
    const MadeUpHalf gradient = vector_of(0.25), average = vector_of(8);
    EXPECT_TRUE(lost("aten::_fused_sgd_", {weight.view(), gradient.view()}, {0, 0, 0.001, 0, 0, 0, 0}));
    EXPECT_FALSE(lost("aten::_fused_sgd_", {weight.view(), gradient.view()}, {1000, 0, 0.001, 0, 0, 0, 0}));
    EXPECT_FALSE(
        lost("aten::_fused_sgd_", {weight.view(), gradient.view(), average.view()}, {0, 0.9, 0.001, 0, 0, 0, 0}));
}

TEST_F(LostUpdates, NearlyAllOfThemMustBe) {
    MadeUpHalf one_counts({1, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4}, 0, DType::BFloat16);
    EXPECT_FALSE(lost("aten::add_", {weight.view(), one_counts.view()}));
    MadeUpHalf mostly_zero({0, 0, 0, 0, 0, 0, 0, 1e-4}, 0, DType::BFloat16);
    EXPECT_FALSE(lost("aten::add_", {weight.view(), mostly_zero.view()})) << "one update tells nothing";
}

TEST_F(LostUpdates, SmallWeightsHoldSmallUpdates) {
    MadeUpHalf small(std::vector<double>(8, 1e-4), kParameter, DType::BFloat16);
    const MadeUpHalf gradient = vector_of(0.25);
    EXPECT_FALSE(lost("aten::add_", {small.view(), gradient.view()}, {-0.001}));
}

TEST_F(LostUpdates, NotInFloat32NotOfOtherShapes) {
    const MadeUpHalf gradient = vector_of(0.25), shorter = vector_of(0.25, 4);
    MadeUp single(std::vector<float>(8, 1), kParameter);
    EXPECT_FALSE(lost("aten::add_", {single.view(), gradient.view()}, {-1e-12}));
    EXPECT_FALSE(lost("aten::add_", {weight.view(), shorter.view()}, {-0.001}));
    EXPECT_FALSE(lost("aten::add_", {weight.view()}, {-0.001}));
}

TEST_F(LostUpdates, EachOfAList) {
    MadeUpHalf other(std::vector<double>(8, 1e-4), kParameter, DType::BFloat16);
    const MadeUpHalf gradient = vector_of(0.25), second = vector_of(0.25);
    const MadeUpOp op("aten::_foreach_add_", {weight.view(), other.view(), gradient.view(), second.view()},
                      {weight.written(), other.written()}, OpClass::Other, {-0.001});
    EXPECT_TRUE(lost_updates(op.event(), 0));
    EXPECT_FALSE(lost_updates(op.event(), 1)) << "its weights are small enough";
}

TEST_F(LostUpdates, WhateverTheStrides) {
    MadeUpHalf both(std::vector<double>(16, 1), kParameter, DType::BFloat16);
    for (size_t i = 1; i < 16; i += 2) both.bits[i] = 0;  // between the elements
    const MadeUpHalf gradient = vector_of(1);
    TensorView weight_view = both.view();
    const int64_t size = 8, stride = 2;
    weight_view.numel = size;
    weight_view.sizes = &size;
    weight_view.strides = &stride;
    EXPECT_TRUE(lost("aten::add_", {weight_view, gradient.view()}, {-0.001}));
    EXPECT_FALSE(lost("aten::add_", {weight_view, gradient.view()}, {-0.01}));
}

TEST_F(LostUpdates, AverageThatTakesTooLittle) {
    const MadeUpHalf average = vector_of(1), followed = vector_of(0.5);
    EXPECT_EQ(lost("aten::lerp_", {average.view(), followed.view()}, {0.001}),
              "8 of 8 updates looked at are below half of the last place of the bfloat16 average they are added to, "
              "the largest 0.0005: they change nothing");
    EXPECT_TRUE(lost("aten::add_", {average.view(), followed.view()}, {0.001}));
    const MadeUpHalf near = vector_of(0.99);
    EXPECT_FALSE(lost("aten::lerp_", {average.view(), near.view()}, {0.1})) << "it follows, in steps";
    EXPECT_TRUE(lost("aten::lerp_", {average.view(), near.view()}, {0.001}));
}

}  // namespace
}  // namespace numsan
