// What a loss scaler catches: its business while it helps, a finding when it does not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// Steps of a training with a loss scaler. `divisor`: what the gradient is divided by; 0 makes an infinity.
struct Scaled {
    Stream s;
    OpInfo sqrt{"aten::sqrt", "", OpClass::Other, false, 0};
    MadeUp weight = MadeUp({1}, kParameter);
    MadeUp scale{65536}, found{0}, above{6e30f}, divisor{0}, gradient{kInf};

    void step(bool bad) {
        gradient.values[0] = bad ? kInf : 1;
        found.values[0] = bad ? 1 : 0;
        s.context.node = "SqrtBackward0";
        s.forward = {&sqrt, 5, 0, OpSeq{}};
        s.op("aten::div", {above.view(), divisor.view()}, {gradient.returned()});
        s.accumulate(gradient, weight);
        s.context.node = nullptr;
        s.op("aten::_amp_foreach_non_finite_check_and_unscale_", {gradient.view(), found.view(), scale.view()},
             {gradient.written(), found.written()}, OpClass::LossScale);
        if (!bad) s.step();
        if (bad) scale.values[0] /= 2;
        s.op("aten::_amp_update_scale_", {scale.view(), found.view()}, {scale.written()}, OpClass::LossScale);
        s.verdict.zero_grad();
    }
    void steps(int count, bool bad) {
        for (int i = 0; i < count; ++i) step(bad);
    }
};

TEST(VerdictScaler, ValueOfNoScaleIsAnErrorAfterEightSkips) {
    Scaled t;
    t.steps(7, true);
    EXPECT_TRUE(t.s.outcome.escaped.empty());
    t.step(true);
    ASSERT_EQ(t.s.outcome.escaped.size(), 8u);
    const EscapedBirth& first = t.s.outcome.escaped[0];
    EXPECT_EQ(first.severity, Severity::Error);
    EXPECT_EQ(first.into, EscapeInto::Gradient);
    EXPECT_EQ(first.impl, &t.weight);
    EXPECT_EQ(first.birth.mechanism, Mechanism::SING);
    EXPECT_TRUE(first.birth.features.scaler);
    EXPECT_EQ(first.birth.evidence,
              (std::vector<std::string>{
                  "the divisor has 1 zero",
                  "the loss scaler skipped 8 steps in a row: at a smaller scale this comes about, too"}));
    EXPECT_TRUE(t.s.outcome.escaped[7].again);
    t.step(true);
    EXPECT_EQ(t.s.outcome.escaped.size(), 9u) << "each further one is counted";
}

TEST(VerdictScaler, StepThatWasTakenBeginsAnew) {
    Scaled t;
    for (int i = 0; i < 4; ++i) {
        t.steps(7, true);
        t.scale.values[0] = 65536;
        t.step(false);
    }
    t.s.finish();
    EXPECT_TRUE(t.s.outcome.escaped.empty()) << "now and then a batch that cannot be used";
    EXPECT_EQ(t.s.verdict.counts().scaler_skips, 28);
    const std::vector<int64_t> steps = t.s.verdict.counts().skipped_steps;
    EXPECT_EQ(steps.size(), 28u);
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

TEST(VerdictScaler, OverflowIsTheScalersAsLongAsTheScaleIsNotUsedUp) {
    Scaled t;
    t.divisor.values[0] = 1e-20f;
    t.steps(26, true);
    EXPECT_EQ(t.scale.values[0], 1.0f / 1024);
    EXPECT_TRUE(t.s.outcome.escaped.empty()) << "of losses that are sums a scale below 1 is right";
    t.step(true);
    ASSERT_EQ(t.s.outcome.escaped.size(), 27u);
    EXPECT_EQ(t.s.outcome.escaped[0].birth.evidence.back(),
              "the loss scaler is down to 0.0004883, it skipped 27 of 27 steps");
}

TEST(VerdictScaler, AScaleThatLivesBelowOneSkipsNowAndThen) {
    Scaled t;
    t.divisor.values[0] = 1e-20f;
    for (int i = 0; i < 40; ++i) {
        t.scale.values[0] = 1.0f / 1024;
        t.step(true);
        t.step(false);
    }
    t.s.finish();
    EXPECT_TRUE(t.s.outcome.escaped.empty());
}

TEST(VerdictScaler, OverflowOfAHealthyStartIsForgottenWithTheFirstStep) {
    Scaled t;
    t.divisor.values[0] = 1e-20f;
    t.steps(9, true);
    t.step(false);
    t.s.finish();
    EXPECT_TRUE(t.s.outcome.escaped.empty());
}

TEST(VerdictScaler, RunThatTookNoStep) {
    for (const int count : {2, 3}) {
        for (const float divisor : {0.0f, 1e-20f}) {
            Scaled t;
            t.divisor.values[0] = divisor;
            t.steps(count, true);
            t.s.finish();
            if (count == 2 || divisor != 0) {
                EXPECT_TRUE(t.s.outcome.escaped.empty()) << count << " " << divisor;
                continue;
            }
            ASSERT_EQ(t.s.outcome.escaped.size(), 3u);
            EXPECT_EQ(t.s.outcome.escaped[0].birth.evidence.back(), "the loss scaler skipped all 3 steps of this run");
        }
    }
}

TEST(VerdictScaler, CompiledRegionSaysNothingOfItsScale) {
    Scaled t;
    t.s.context.after_compiled = true;
    for (int i = 0; i < 9; ++i) {
        t.gradient.values[0] = kInf;
        t.s.verdict.forget(t.gradient.view());
        t.s.context.node = "CompiledFunctionBackward";
        MadeUp given{kInf};
        t.s.op("aten::clone", {given.view()}, {t.gradient.returned()}, OpClass::Preserving);
        t.s.accumulate(t.gradient, t.weight);
        t.s.context.node = nullptr;
        t.found.values[0] = 1;
        t.s.op("aten::_amp_foreach_non_finite_check_and_unscale_", {t.gradient.view(), t.found.view(), t.scale.view()},
               {t.gradient.written(), t.found.written()}, OpClass::LossScale);
        t.s.op("aten::_amp_update_scale_", {t.scale.view(), t.found.view()}, {t.scale.written()}, OpClass::LossScale);
        t.s.verdict.zero_grad();
    }
    EXPECT_TRUE(t.s.outcome.escaped.empty());
}

/// Two scalers take turns, each with a scale of its own.
struct TwoScalers {
    Scaled a;
    MadeUp weight = MadeUp({1}, kParameter), scale{8}, found{0}, gradient{1};

    /// A step of the second one, in which nothing is bad.
    void other_step() {
        Stream& s = a.s;
        s.context.node = "MulBackward0";
        s.op("aten::mul", {a.above.view()}, {gradient.returned()});
        s.accumulate(gradient, weight);
        s.context.node = nullptr;
        s.op("aten::_amp_foreach_non_finite_check_and_unscale_", {gradient.view(), found.view(), scale.view()},
             {gradient.written(), found.written()}, OpClass::LossScale);
        s.step({&weight});
        s.op("aten::_amp_update_scale_", {scale.view(), found.view()}, {scale.written()}, OpClass::LossScale);
        s.verdict.zero_grad();
    }
};

TEST(VerdictScaler, StepsOfAnotherScalerSayNothingOfThisOne) {
    TwoScalers t;
    for (int i = 0; i < 7; ++i) {
        t.a.step(true);
        t.other_step();
    }
    EXPECT_TRUE(t.a.s.outcome.escaped.empty());
    t.a.step(true);
    EXPECT_EQ(t.a.s.outcome.escaped.size(), 8u) << "what it held back is still there";
}

TEST(VerdictScaler, ScaleOfAnotherScalerIsNotItsOwn) {
    TwoScalers t;
    t.a.divisor.values[0] = 1e-30f;  // an overflow: another scale may avoid it
    t.scale.values[0] = 1e-6f;
    for (int i = 0; i < 5; ++i) {
        t.a.step(true);
        t.other_step();
    }
    t.a.s.finish();
    EXPECT_TRUE(t.a.s.outcome.escaped.empty()) << "neither is used up";
}

TEST(VerdictScaler, WhatItFoundForSeveralOptimizersIsAddedUp) {
    TwoScalers t;
    Stream& s = t.a.s;
    t.other_step();  // there is another scaler
    MadeUp first{0};
    for (int i = 0; i < 8; ++i) {
        t.a.gradient.values[0] = kInf;
        s.context.node = "SqrtBackward0";
        s.forward = {&t.a.sqrt, 5, 0, OpSeq{}};
        s.op("aten::div", {t.a.above.view(), t.a.divisor.view()}, {t.a.gradient.returned()});
        s.accumulate(t.a.gradient, t.a.weight);
        s.context.node = nullptr;
        t.a.found.values[0] = 1;
        s.op("aten::_amp_foreach_non_finite_check_and_unscale_",
             {t.a.gradient.view(), t.a.found.view(), t.a.scale.view()}, {t.a.gradient.written(), t.a.found.written()},
             OpClass::LossScale);
        first.values[0] = 1;
        s.op("aten::add_", {first.view(), t.a.found.view()}, {first.written()});
        s.op("aten::_amp_update_scale_", {t.a.scale.view(), first.view()}, {t.a.scale.written()}, OpClass::LossScale);
        s.verdict.zero_grad();
    }
    EXPECT_EQ(s.outcome.escaped.size(), 8u);
}

TEST(VerdictScaler, OverflowsThatAScaledLossLeavesInAnotherNetworkAreItsOwn) {
    for (const bool scaled : {true, false}) {
        TwoScalers t;
        Stream& s = t.a.s;
        if (scaled) t.other_step();
        MadeUp large{1e38f}, over{kInf}, other({1}, kParameter);
        s.context.node = "MulBackward0";
        s.op("aten::mul", {large.view(), large.view()}, {over.returned()});
        s.accumulate(over, other);
        s.context.node = nullptr;
        s.verdict.zero_grad();
        s.finish();
        EXPECT_EQ(s.outcome.escaped.size(), scaled ? 0u : 1u);
    }
}

}  // namespace
}  // namespace numsan
