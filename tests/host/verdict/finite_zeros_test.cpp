// The verdict on zeros that are not zeros: overflows that were divided by, flushed gradients, lost updates.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// x / sqrt(sum(x * x)), whose sum of squares overflowed, times a weight.
class MutedOverflow : public testing::Test {
  protected:
    MutedOverflow() { s.context.touched = true; }
    void overflow() {
        born = s.op("aten::pow", {x.view()}, {squares.returned()});
        s.op("aten::sum", {squares.view()}, {sum.returned()});
    }
    Stream s;
    MadeUp x{3e20f, 1}, squares{kInf, 1}, sum{kInf}, root{kInf}, zeros{0, 0}, product{0, 0}, loss{0};
    MadeUp weight{{1, 1}, kParameter};
    BirthId born = 0;
};

TEST_F(MutedOverflow, DividedByItsRootAndMultiplied) {
    overflow();
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::div", {x.view(), root.view()}, {zeros.returned()});
    s.op("aten::mul", {zeros.view(), weight.view()}, {product.returned()});
    s.op("aten::sum", {product.view()}, {loss.returned()});
    s.loss(loss);
    EXPECT_TRUE(s.outcome.escaped.empty()) << "decided when the optimizer steps";
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.id, born);
    EXPECT_EQ(s.only().birth.op, "aten::pow");
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::OVF);
    EXPECT_EQ(s.only().severity, Severity::Error);
    EXPECT_EQ(s.only().into, EscapeInto::Loss);
    s.finish();
    EXPECT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.verdict.counts().absorbed, 0);
}

TEST_F(MutedOverflow, ByAnInverseRoot) {
    overflow();
    MadeUp inverse{0};
    s.op("aten::rsqrt", {sum.view()}, {inverse.returned()});
    s.op("aten::mul", {x.view(), inverse.view()}, {product.returned()});
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.op, "aten::pow");
}

TEST_F(MutedOverflow, HandedOnBeforeItMultiplies) {
    overflow();
    MadeUp clamped{0, 0}, moved{0, 0};
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::div", {x.view(), root.view()}, {zeros.returned()});
    s.op("aten::clamp_max", {zeros.view()}, {clamped.returned()});
    s.op("aten::cat", {clamped.view()}, {moved.returned()}, OpClass::Preserving);
    s.op("aten::mm", {moved.view(), weight.view()}, {product.returned()});
    s.finish();
    EXPECT_EQ(s.outcome.escaped.size(), 1u);
}

TEST_F(MutedOverflow, IntoAGradientThatIsScaledInPlace) {
    MadeUp gradient{3e20f, 1};
    MadeUp coefficient{0};
    s.accumulate(gradient, weight);
    overflow();
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::reciprocal", {root.view()}, {coefficient.returned()});
    gradient.values = {0, 0};
    s.op("aten::mul_", {gradient.view(), coefficient.view()}, {gradient.written()});
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Gradient);
}

TEST_F(MutedOverflow, ScaledByANumberOnTheWay) {
    MadeUp gradient{3e20f, 1};
    MadeUp inverse{0}, coefficient{0};
    s.accumulate(gradient, weight);
    overflow();
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::reciprocal", {root.view()}, {inverse.returned()});
    s.op("aten::mul", {inverse.view()}, {coefficient.returned()});
    gradient.values = {0, 0};
    s.op("aten::mul_", {gradient.view(), coefficient.view()}, {gradient.written()});
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Gradient) << "a number multiplies no values";
}

TEST_F(MutedOverflow, WhatOverflowsAfterItInADivergedRunIsAnotherFinding) {
    for (const float value : {1.f, 1e3f, 1e6f, 1e9f}) s.loss(MadeUp{value});
    MadeUp gradient{3e20f, 1};
    MadeUp coefficient{0}, large{3e38f}, result{kInf};
    s.accumulate(gradient, weight);
    overflow();
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::reciprocal", {root.view()}, {coefficient.returned()});
    gradient.values = {0, 0};
    s.op("aten::mul_", {gradient.view(), coefficient.view()}, {gradient.written()});
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::HYPER);
    s.context.stack = 2;
    const BirthId second = s.op("aten::mul", {large.view(), large.view()}, {result.returned()});
    EXPECT_NE(second, born);
    s.loss(result);
    ASSERT_EQ(s.outcome.escaped.size(), 2u);
    EXPECT_EQ(s.outcome.escaped[1].birth.id, second);
}

TEST_F(MutedOverflow, ZerosThatOnlyAddAreNone) {
    overflow();
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::div", {x.view(), root.view()}, {zeros.returned()});
    MadeUp added{1, 1};
    s.op("aten::add", {zeros.view(), weight.view()}, {added.returned()});
    s.op("aten::mul", {added.view(), weight.view()}, {product.returned()});
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(MutedOverflow, ZerosThatWereOverwrittenAreForgotten) {
    overflow();
    s.op("aten::sqrt", {sum.view()}, {root.returned()});
    s.op("aten::div", {x.view(), root.view()}, {zeros.returned()});
    zeros.values = {1, 1};
    s.op("aten::fill_", {zeros.view()}, {zeros.written()}, OpClass::Overwriting);
    s.op("aten::mul", {zeros.view(), weight.view()}, {product.returned()});
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

/// 1 / (1 + exp(100)) is zero for good reason.
class Sigmoid : public testing::Test {
  protected:
    void rest() {
        s.op("aten::add", {e.view()}, {denominator.returned()});
        s.op("aten::reciprocal", {denominator.view()}, {gate.returned()});
        s.op("aten::mul", {gate.view(), x.view()}, {product.returned()});
        s.loss(product);
        s.step();
        s.finish();
    }
    Stream s;
    MadeUp x{100}, e{kInf}, denominator{kInf}, gate{0}, product{0};
};

TEST_F(Sigmoid, StaysSilent) {
    s.op("aten::exp", {x.view()}, {e.returned()});
    rest();
    EXPECT_TRUE(s.outcome.escaped.empty());
    EXPECT_EQ(s.verdict.counts().births, 1);
    EXPECT_EQ(s.verdict.counts().absorbed, 1);
}

TEST_F(Sigmoid, StaysSilentInPlace) {
    s.op("aten::exp_", {e.view()}, {e.written()});
    rest();
    EXPECT_TRUE(s.outcome.escaped.empty()) << "what exp_ read is gone: nothing is known of its size";
}

/// A gradient in half that is too small for it, on its way to a parameter.
class Flushed : public testing::Test {
  protected:
    Flushed() {
        s.vanishing = true;
        s.context.step = 1;
    }
    BirthId flush() {
        s.context.node = "MulBackward0";
        s.forward = {&mul, 5, 0, OpSeq{}};
        return s.op("aten::mul", {small.view(), small.view()}, {gradient.returned()});
    }
    /// A step of a model: `factors` squared are `result`, and the gradient of `leaf` is the product with that.
    void forward(int64_t step, MadeUpHalf& factors, MadeUpHalf& result, MadeUpHalf& leaf, MadeUpHalf& back) {
        s.context.touched = true;
        s.context.step = step;
        s.context.node = nullptr;
        s.context.stack = 3;
        s.op("aten::mul", {factors.view(), factors.view()}, {result.returned()});
        s.context.node = "MulBackward0";
        s.op("aten::mul", {result.view(), leaf.view()}, {back.returned()});
        s.accumulate(back, leaf);
        s.context.node = nullptr;
        s.step();
    }
    Stream s;
    OpInfo mul{"aten::mul", "", OpClass::Other, false, 0};
    MadeUpHalf small{1e-5, 2e-5}, gradient{0, 0}, next{0, 0};
    MadeUpHalf weight{{1, 1}, kParameter};
};

TEST_F(Flushed, GradientThatReachesAParameterIsAWarning) {
    flush();
    s.op("aten::view", {gradient.view()}, {next.returned()}, OpClass::Preserving);
    s.accumulate(next, weight);
    s.context.node = nullptr;
    EXPECT_TRUE(s.outcome.escaped.empty());
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    const EscapedBirth made = s.only();
    EXPECT_EQ(made.severity, Severity::Warning);
    EXPECT_EQ(made.into, EscapeInto::Gradient);
    EXPECT_EQ(made.impl, &weight);
    EXPECT_EQ(made.birth.mechanism, Mechanism::UDF);
    EXPECT_EQ(made.birth.kind, 0);
    EXPECT_EQ(made.birth.phase, Phase::Backward);
    EXPECT_EQ(made.birth.forward_op, "aten::mul");
    EXPECT_EQ(made.birth.forward_stack, 5u);
    ASSERT_EQ(made.birth.evidence.size(), 1u);
    EXPECT_EQ(
        made.birth.evidence[0],
        "2 of 2 results of mul that should not be zero are: the largest is at most 4.01e-10, and float16 holds nothing "
        "between 0 and 5.96e-08");
    EXPECT_TRUE(s.outcome.contaminated.empty()) << "a zero contaminates nothing";
}

TEST_F(Flushed, CountsNeverGoBelowZero) {
    flush();
    s.accumulate(gradient, weight);
    s.step();
    EXPECT_EQ(s.verdict.counts().escaped, 1);
    EXPECT_GE(s.verdict.counts().births, s.verdict.counts().escaped);
    EXPECT_GE(s.verdict.counts().absorbed, 0);
}

TEST_F(Flushed, GradientThatReachesNobodyIsNothing) {
    flush();
    s.context.node = nullptr;
    s.step();
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Flushed, NothingInAStepThatIsNotLookedAt) {
    for (const int64_t step : {6, 7, 10}) {
        s.context.step = step;
        flush();
        s.accumulate(gradient, weight);
        s.context.node = nullptr;
        s.step();
    }
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Flushed, OtherTermsFillTheGradient) {
    flush();
    MadeUpHalf sum{0.5, 0.5};
    s.op("aten::add", {gradient.view(), sum.view()}, {sum.returned()});
    s.accumulate(sum, weight);
    s.step();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Flushed, ForwardZerosOfModelsOwnNumbersReachTheGradient) {
    forward(1, small, next, weight, gradient);
    EXPECT_TRUE(s.outcome.escaped.empty()) << "once may be chance";
    forward(2, small, next, weight, gradient);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().severity, Severity::Warning);
    EXPECT_EQ(s.only().into, EscapeInto::Gradient);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::UDF);
    EXPECT_EQ(s.only().birth.phase, Phase::Forward);
    EXPECT_EQ(s.only().birth.step, 1) << "it is told where it began";
    EXPECT_FALSE(s.only().birth.features.hidden);
    EXPECT_EQ(s.only().birth.stack, 3u);
}

TEST_F(Flushed, ForwardZerosOfMostOfAResult) {
    MadeUpHalf factors{1e-5, 2e-5, 1e-5, 1}, part{0, 0, 0, 1}, back{0, 0, 0, 1};
    MadeUpHalf row{{1, 1, 1, 1}, kParameter};
    forward(1, factors, part, row, back);
    EXPECT_TRUE(s.outcome.escaped.empty()) << "once may be chance";
    forward(2, factors, part, row, back);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.evidence[0],
              "3 of 4 results of mul that should not be zero are: the largest is at most 1, and float16 holds nothing "
              "between 0 and 5.96e-08");
}

TEST_F(Flushed, ForwardZerosThatAreAskedNotToBeTold) {
    s.context.touched = true;
    for (const int64_t step : {1, 2, 3}) {
        s.context.step = step;
        s.context.node = nullptr;
        s.context.ignored = true;
        s.op("aten::mul", {small.view(), small.view()}, {next.returned()});
        s.context.ignored = false;  // what is made of them lies outside
        s.context.node = "MulBackward0";
        s.op("aten::mul", {next.view(), weight.view()}, {gradient.returned()});
        s.accumulate(gradient, weight);
        s.step();
    }
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Flushed, ForwardZerosThatAreTheLoss) {
    s.context.touched = true;
    for (const int64_t step : {1, 2}) {
        s.context.step = step;
        s.op("aten::mul", {small.view(), small.view()}, {next.returned()});
        MadeUp loss{0};
        s.op("aten::sum", {next.view()}, {loss.returned()});
        s.loss(loss);
    }
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Loss);
}

TEST_F(Flushed, ForwardZerosAreNobodysGradient) {
    for (const bool touched : {false, true}) {
        s.context.touched = touched;
        for (const int64_t step : {1, 2, 4}) {
            s.context.step = step;
            MadeUpHalf some{0, 1e-3};
            s.op("aten::mul", {small.view(), small.view()}, {touched ? some.returned() : gradient.returned()});
            if (!touched) s.accumulate(gradient, weight);
            s.step();
        }
    }
    EXPECT_TRUE(s.outcome.escaped.empty()) << "not of the model's own, or not all of it";
}

TEST_F(Flushed, GradientThatIsScaledInPlace) {
    MadeUpHalf factor{1e-4};
    s.context.on_state = true;
    s.grad_enabled = false;
    for (const int64_t step : {1, 2}) {
        s.context.step = step;
        s.context.node = "MulBackward0";
        gradient.bits = small.bits;
        s.op("aten::add", {small.view()}, {gradient.returned()});
        s.accumulate(gradient, weight);
        s.context.node = nullptr;
        gradient.bits = {0, 0};
        s.op("aten::mul_", {gradient.view(), factor.view()}, {gradient.written()});
        EXPECT_TRUE(s.outcome.escaped.empty());
    }
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Gradient);
    EXPECT_EQ(s.only().birth.step, 1);
}

/// Updates of a bfloat16 weight that are below its last place.
class Lost : public testing::Test {
  protected:
    Lost() {
        s.vanishing = true;
        s.context.in_optimizer = true;
        s.context.in_module = false;
        s.grad_enabled = false;
        s.scalars = {-0.001};
    }
    void update(int64_t step) {
        s.context.step = step;
        s.op("aten::add_", {weight.view(), gradient.view()}, {weight.written()});
    }
    Stream s;
    MadeUpHalf gradient{std::vector<double>(8, 0.25), 0, DType::BFloat16};
    MadeUpHalf weight{std::vector<double>(8, 1), kParameter, DType::BFloat16};
};

TEST_F(Lost, AtTwoSampledStepsIsAWarning) {
    update(1);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty()) << "once may be chance";
    update(2);
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().severity, Severity::Warning);
    EXPECT_EQ(s.only().into, EscapeInto::Parameter);
    EXPECT_EQ(s.only().impl, &weight);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::PREC);
    EXPECT_EQ(s.only().birth.phase, Phase::Optimizer);
    EXPECT_EQ(s.only().birth.step, 2);
    EXPECT_EQ(s.only().birth.evidence,
              std::vector<std::string>{
                  "8 of 8 updates looked at are below half of the last place of the bfloat16 weight they are "
                  "added to, the largest 0.00025: they change nothing"});
    update(4);
    s.finish();
    EXPECT_EQ(s.outcome.escaped.size(), 1u) << "said once";
    EXPECT_GE(s.verdict.counts().absorbed, 0);
}

TEST_F(Lost, LooksAtFewStepsOnly) {
    for (const int64_t step : {0, 3, 5, 6, 7}) update(step);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
    update(8);
    update(16);
    s.finish();
    EXPECT_EQ(s.outcome.escaped.size(), 1u);
}

TEST_F(Lost, UpdatesThatCountAreNone) {
    s.scalars = {-0.5};
    for (const int64_t step : {1, 2, 4, 8}) update(step);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

/// An average by hand of a weight that the optimizer wrote.
class Average : public Lost {
  protected:
    Average() {
        s.scalars = {0.001};
        s.context.in_optimizer = false;
        s.context.on_state = true;
    }
    void follow(const MadeUpTensor& followed) {
        for (const int64_t step : {1, 2, 4}) {
            s.context.step = step;
            s.op("aten::lerp_", {average.view(), followed.view()}, {average.written()});
        }
        s.finish();
    }
    MadeUpHalf average{std::vector<double>(8, 1.5), 0, DType::BFloat16};
};

TEST_F(Average, OfAParameterIsAWarning) {
    follow(weight);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Buffer);
    EXPECT_EQ(s.only().impl, &average);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::PREC);
}

TEST_F(Average, OfWhatIsNoParameterIsNone) {
    follow(gradient);
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Average, MomentsOfTheOptimizerAreNone) {
    s.context.in_optimizer = true;
    follow(weight);
    EXPECT_TRUE(s.outcome.escaped.empty());
}

}  // namespace
}  // namespace numsan
