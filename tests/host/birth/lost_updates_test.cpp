// Updates below half of a weight's last place: of one op, and over steps.
#include "host/birth/lost_updates.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// Eight weights of 1 in bfloat16, whose last place is 2^-7: half of it is 0.0039.
class LostByOneOp : public testing::Test {
  protected:
    static MadeUpHalf vector_of(double value, size_t n = 8, DType dtype = DType::BFloat16) {
        return MadeUpHalf(std::vector<double>(n, value), 0, dtype);
    }
    static std::optional<std::string> lost(const char* op, std::vector<TensorView> inputs,
                                           std::vector<double> scalars = {}) {
        const TensorView weight = inputs[0];
        const std::optional<LostShare> share =
            lost_updates(MadeUpOp(op, std::move(inputs), {weight}, OpClass::Other, std::move(scalars)).event(), 0);
        return share && !share->evidence.empty() ? std::optional(share->evidence) : std::nullopt;
    }
    MadeUpHalf weight{std::vector<double>(8, 1), kParameter, DType::BFloat16};
};

TEST_F(LostByOneOp, BelowHalfOfTheLastPlace) {
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

TEST_F(LostByOneOp, QuotientOfMoments) {
    const MadeUpHalf mean = vector_of(0.25), deviation = vector_of(0.25), small = vector_of(0.0009765625);
    EXPECT_TRUE(lost("aten::addcdiv_", {weight.view(), mean.view(), deviation.view()}, {-0.001}));
    EXPECT_FALSE(lost("aten::addcdiv_", {weight.view(), mean.view(), small.view()}, {-0.001}));
}

TEST_F(LostByOneOp, AverageThatDoesNotFollow) {
    const MadeUpHalf close = vector_of(1.25), same = vector_of(1);
    EXPECT_TRUE(lost("aten::lerp_", {weight.view(), close.view()}, {0.001}));
    EXPECT_FALSE(lost("aten::lerp_", {weight.view(), close.view()}, {0.1}));
    EXPECT_FALSE(lost("aten::lerp_", {weight.view(), same.view()}, {0.001})) << "it is there already";
    EXPECT_FALSE(lost("aten::lerp_", {weight.view(), close.view(), same.view()})) << "weights of its own";
}

TEST_F(LostByOneOp, FusedAdam) {
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

TEST_F(LostByOneOp, FusedSgd) {
    const MadeUpHalf gradient = vector_of(0.25), average = vector_of(8);
    EXPECT_TRUE(lost("aten::_fused_sgd_", {weight.view(), gradient.view()}, {0, 0, 0.001, 0, 0, 0, 0}));
    EXPECT_FALSE(lost("aten::_fused_sgd_", {weight.view(), gradient.view()}, {1000, 0, 0.001, 0, 0, 0, 0}));
    EXPECT_FALSE(
        lost("aten::_fused_sgd_", {weight.view(), gradient.view(), average.view()}, {0, 0.9, 0.001, 0, 0, 0, 0}));
}

TEST_F(LostByOneOp, NearlyAllOfThemMustBe) {
    MadeUpHalf one_counts({1, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4}, 0, DType::BFloat16);
    EXPECT_FALSE(lost("aten::add_", {weight.view(), one_counts.view()}));
    MadeUpHalf mostly_zero({0, 0, 0, 0, 0, 0, 0, 1e-4}, 0, DType::BFloat16);
    EXPECT_FALSE(lost("aten::add_", {weight.view(), mostly_zero.view()})) << "one update tells nothing";
}

TEST_F(LostByOneOp, SmallWeightsHoldSmallUpdates) {
    MadeUpHalf small(std::vector<double>(8, 1e-4), kParameter, DType::BFloat16);
    const MadeUpHalf gradient = vector_of(0.25);
    EXPECT_FALSE(lost("aten::add_", {small.view(), gradient.view()}, {-0.001}));
}

TEST_F(LostByOneOp, NotInFloat32NotOfOtherShapes) {
    const MadeUpHalf gradient = vector_of(0.25), shorter = vector_of(0.25, 4);
    MadeUp single(std::vector<float>(8, 1), kParameter);
    EXPECT_FALSE(lost("aten::add_", {single.view(), gradient.view()}, {-1e-12}));
    EXPECT_FALSE(lost("aten::add_", {weight.view(), shorter.view()}, {-0.001}));
    EXPECT_FALSE(lost("aten::add_", {weight.view()}, {-0.001}));
}

TEST_F(LostByOneOp, EachOfAList) {
    MadeUpHalf other(std::vector<double>(8, 1e-4), kParameter, DType::BFloat16);
    const MadeUpHalf gradient = vector_of(0.25), second = vector_of(0.25);
    const MadeUpOp op("aten::_foreach_add_", {weight.view(), other.view(), gradient.view(), second.view()},
                      {weight.written(), other.written()}, OpClass::Other, {-0.001});
    EXPECT_NE(lost_updates(op.event(), 0)->evidence, "");
    EXPECT_EQ(lost_updates(op.event(), 1)->evidence, "") << "its weights are small enough";
}

TEST_F(LostByOneOp, WhateverTheStrides) {
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

TEST_F(LostByOneOp, AverageThatTakesTooLittle) {
    const MadeUpHalf average = vector_of(1), followed = vector_of(0.5);
    EXPECT_EQ(lost("aten::lerp_", {average.view(), followed.view()}, {0.001}),
              "8 of 8 updates looked at are below half of the last place of the bfloat16 average they are added to, "
              "the largest 0.0005: they change nothing");
    EXPECT_TRUE(lost("aten::add_", {average.view(), followed.view()}, {0.001}));
    const MadeUpHalf near = vector_of(0.99);
    EXPECT_FALSE(lost("aten::lerp_", {average.view(), near.view()}, {0.1})) << "it follows, in steps";
    EXPECT_TRUE(lost("aten::lerp_", {average.view(), near.view()}, {0.001}));
}

/// A bfloat16 weight of ones through steps; says in which of them lost updates are told.
class LostInSteps : public testing::Test {
  protected:
    bool added(int64_t step, double update) {
        const MadeUpHalf gradient(std::vector<double>(8, 1), 0, DType::BFloat16);
        const MadeUpOp op("aten::add_", {weight.view(), gradient.view()}, {weight.written()}, OpClass::Other, {update});
        return tell(op, step);
    }
    bool copied(int64_t step, std::vector<float> source) {
        const MadeUp rounded(source);
        for (size_t i = 0; i < 8; ++i) weight.bits[i] = static_cast<uint16_t>(encoded(source[i], DType::BFloat16));
        const MadeUpOp op("aten::copy_", {weight.view(), rounded.view()}, {weight.written()}, OpClass::Preserving);
        return tell(op, step);
    }
    static std::vector<float> ones_less(float update) { return std::vector<float>(8, 1 - update); }

    MadeUpHalf weight{std::vector<double>(8, 1), kParameter, DType::BFloat16};
    Lineage lineage;
    int64_t seq = 0;

  private:
    bool tell(const MadeUpOp& op, int64_t step) {
        const bool told = updates_.seen_again(op.event(), 0, step, OpSeq{++seq}).has_value();
        lineage.add(op.event(), weight.written(), Range{}, OpSeq{seq}, 1, 0);
        return told;
    }
    LostUpdates updates_{lineage};
};

TEST_F(LostInSteps, ToldOnceAtTheSecondOfTheStepsLookedAt) {
    std::vector<int64_t> told;
    for (int64_t step = 0; step < 40; ++step) {
        if (added(step, -0.001)) told.push_back(step);
    }
    EXPECT_EQ(told, std::vector<int64_t>{2});
}

TEST_F(LostInSteps, NotWhileTheRateWarmsUp) {
    for (int64_t step = 0; step < 1000; ++step) EXPECT_FALSE(added(step, -1e-6 * double(step))) << step;
    EXPECT_FALSE(added(1024, -1e-3)) << "the first time with a rate that stays";
    EXPECT_TRUE(added(2048, -1e-3));
}

TEST_F(LostInSteps, NotOnceTrainingHasSettled) {
    for (int64_t step = 0; step < 32; ++step) EXPECT_FALSE(added(step, -0.1)) << "they arrive";
    for (int64_t step = 32; step < 1000; ++step) EXPECT_FALSE(added(step, -0.001)) << "step " << step;
}

TEST_F(LostInSteps, NotQuiteAsLargeAsTheFirstOnes) {
    EXPECT_FALSE(added(1, -0.01)) << "Adam's first updates are its largest";
    EXPECT_FALSE(added(2, -0.003));
    EXPECT_TRUE(added(4, -0.003));
}

TEST_F(LostInSteps, ACopyThatRoundsTheUpdateAway) {
    std::vector<int64_t> told;
    for (int64_t step = 0; step < 40; ++step) {
        if (copied(step, ones_less(0.001f))) told.push_back(step);
    }
    EXPECT_EQ(told, std::vector<int64_t>{3}) << "the copies of steps 1 and 2, 2 and 3";
}

TEST_F(LostInSteps, ACopyThatChangesTheWeightIsAnUpdate) {
    float value = 1;
    for (int64_t step = 0; step < 40; ++step) {
        value -= 0.01f;
        EXPECT_FALSE(copied(step, std::vector<float>(8, value))) << step;
    }
}

TEST_F(LostInSteps, ACopyAfterAnotherWriteIsComparedWithNothing) {
    for (int64_t step = 0; step < 40; ++step) {
        const MadeUpOp other("aten::mul_", {weight.view()}, {weight.written()});
        lineage.add(other.event(), weight.written(), Range{}, OpSeq{++seq}, 1, 0);
        EXPECT_FALSE(copied(step, ones_less(0.001f))) << step;
    }
}

}  // namespace
}  // namespace numsan
