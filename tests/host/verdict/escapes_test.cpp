// The verdict on values that hide: state, loads, hidden branches, what a bad loss makes of its gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// A running mean that takes in a NaN.
class State : public testing::Test {
  protected:
    void write() {
        s.op("aten::log", {negative.view()}, {bad.returned()});
        s.op("aten::lerp_", {running.view(), bad.view()}, {running.written()});
    }
    Stream s;
    MadeUp negative{-1}, bad{kNan}, running{kNan};
};

TEST_F(State, ConfirmedWriteIsAnError) {
    for (const EscapeInto into : {EscapeInto::Buffer, EscapeInto::OptimizerState}) {
        Stream other;
        other.op("aten::log", {negative.view()}, {bad.returned()});
        other.op("aten::lerp_", {running.view(), bad.view()}, {running.written()});
        const std::vector<StateWrite> writes = other.verdict.take_state_writes();
        ASSERT_EQ(writes.size(), 1u);
        EXPECT_EQ(writes[0].impl, &running);
        EXPECT_EQ(writes[0].seq, OpSeq{1});
        EXPECT_TRUE(other.verdict.take_state_writes().empty()) << "taken once";
        other.verdict.confirm(writes[0], into, other.outcome);
        ASSERT_EQ(other.outcome.escaped.size(), 1u);
        EXPECT_EQ(other.only().into, into);
        EXPECT_EQ(other.only().severity, Severity::Error);
        EXPECT_EQ(other.only().impl, &running);
        EXPECT_EQ(other.only().birth.op, "aten::log");
        ASSERT_EQ(other.outcome.contaminated.size(), 1u);
        EXPECT_EQ(other.outcome.contaminated[0].kind, into);
    }
}

TEST_F(State, UnconfirmedWriteIsNothing) {
    write();
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(State, NotOfWhatEscapedWasIgnoredOrIntended) {
    write();
    s.loss(bad);
    EXPECT_TRUE(s.verdict.take_state_writes().empty()) << "reported already";
    s.context.ignored = true;
    MadeUp other{kNan};
    s.op("aten::log", {negative.view()}, {other.returned()});
    s.op("aten::lerp_", {running.view(), other.view()}, {running.written()});
    s.context.ignored = false;
    MadeUp mask{-kInf};
    s.infinite_scalar = true;
    s.op("aten::fill_", {mask.view()}, {mask.written()}, OpClass::Constant);
    EXPECT_TRUE(s.verdict.take_state_writes().empty());
}

TEST_F(State, GradientsAndNodesAreNoState) {
    MadeUp gradient{kNan}, accumulated{kNan};
    MadeUp weight({1}, kParameter);
    s.accumulate(gradient, weight);
    s.op("aten::log", {negative.view()}, {bad.returned()});
    s.op("aten::add_", {gradient.view(), bad.view()}, {gradient.written()});
    s.context.node = "MulBackward0";
    s.op("aten::add_", {accumulated.view(), bad.view()}, {accumulated.written()});
    EXPECT_TRUE(s.verdict.take_state_writes().empty());
}

TEST_F(State, StatisticsOfABatchNormNeedNoName) {
    MadeUp normal{kNan};
    s.op("aten::log", {negative.view()}, {bad.returned()});
    s.op("aten::native_batch_norm", {bad.view(), running.view()}, {normal.returned(), running.written()});
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Buffer);
    EXPECT_EQ(s.only().impl, &running);
}

TEST_F(State, ForgottenByAForkedChild) {
    write();
    s.verdict.lock();
    s.verdict.forget_pending();
    s.verdict.unlock();
    EXPECT_TRUE(s.verdict.take_state_writes().empty());
}

TEST(VerdictLoad, CopyInsideLoadStateDictIsTheBirth) {
    Stream s;
    MadeUp checkpoint{kNan, 1};
    MadeUp weight({kNan, 1}, kParameter);
    s.context.stack = kLoadStack;
    s.context.in_module = false;
    s.grad_enabled = false;
    s.op("aten::copy_", {weight.view(), checkpoint.view()}, {weight.written()}, OpClass::Overwriting);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::STATE);
    EXPECT_EQ(s.only().birth.phase, Phase::Load);
    EXPECT_EQ(s.only().birth.op, "aten::copy_");
    EXPECT_EQ(s.only().birth.stack, kLoadStack);
    EXPECT_EQ(s.only().into, EscapeInto::Parameter);
    EXPECT_EQ(s.only().severity, Severity::Error);
}

TEST(VerdictLoad, StateLoadedAndReadLaterIsBornWhereItWasLoaded) {
    Stream s;
    MadeUp checkpoint{kNan}, running{kNan}, y{kNan};
    s.context.stack = kLoadStack;
    s.context.in_module = false;
    s.op("aten::copy_", {running.view(), checkpoint.view()}, {running.written()}, OpClass::Overwriting);
    s.context.stack = 1;
    s.context.step = 3;
    s.op("aten::mul", {running.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::STATE);
    EXPECT_EQ(s.only().birth.step, 0);
}

TEST(VerdictMask, WrittenDownByLiftFreshIsIntended) {
    Stream s;
    MadeUp mask{0, -kInf}, wrapped{0, -kInf}, scores{1, -kInf}, weights{1, 0};
    s.op("aten::lift_fresh", {mask.view()}, {wrapped.returned()}, OpClass::Constant);
    s.op("aten::add", {wrapped.view()}, {scores.returned()});
    s.op("aten::_softmax", {scores.view()}, {weights.returned()});
    s.op("aten::item", {scores.view()}, {}, OpClass::HostRead);
    s.loss(weights);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
    EXPECT_EQ(s.verdict.counts().births, 0);
}

TEST(VerdictMask, PositiveInfinityInAnArrayIsData) {
    Stream s;
    MadeUp table{1, kInf}, wrapped{1, kInf}, y{2, kInf};
    s.op("aten::lift_fresh", {table.view()}, {wrapped.returned()}, OpClass::Constant);
    s.op("aten::mul", {wrapped.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(s.only().birth.phase, Phase::Data);
    EXPECT_EQ(s.only().birth.kind, kPosInf);
}

TEST(VerdictBackward, OfALossThatWasBadGoesBackToTheLoss) {
    Stream s;
    MadeUp x{-1}, y{kNan}, zero{0}, one{1}, gradient{kInf};
    MadeUp weight({1}, kParameter);
    OpInfo sqrt{"aten::sqrt", "", OpClass::Other, false, 0};
    const BirthId born = s.op("aten::log", {x.view()}, {y.returned()});
    s.loss(y);
    s.context.node = "SqrtBackward0";
    s.forward = {&sqrt, 4, 0, OpSeq{}};
    EXPECT_EQ(s.op("aten::div", {one.view(), zero.view()}, {gradient.returned()}), born);
    s.accumulate(gradient, weight);
    s.context.node = nullptr;
    s.step();
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.op, "aten::log");
    EXPECT_EQ(s.verdict.counts().births, 1);
}

TEST(VerdictBackward, OfAGoodLossAfterABadOneIsItsOwn) {
    Stream s;
    MadeUp x{-1}, y{kNan}, good{1}, zero{0}, one{1}, gradient{kInf};
    const BirthId born = s.op("aten::log", {x.view()}, {y.returned()});
    s.loss(y);
    s.loss(good);
    s.context.node = "SqrtBackward0";
    EXPECT_NE(s.op("aten::div", {one.view(), zero.view()}, {gradient.returned()}), born);
}

/// log(x), whose bad part where() drops, and whose derivative multiplies it.
class Hidden : public testing::Test {
  protected:
    void forward() {
        s.context.last_parameter_read = OpSeq::None;
        born = s.op("aten::log", {x.view()}, {y.returned()});
        s.op("aten::where", {y.view(), x.view()}, {kept.returned()}, OpClass::Preserving);
    }
    void backward() {
        s.context.node = "LogBackward0";
        s.forward = {&log, 1, born, OpSeq{}};
        s.op("aten::div", {x.view(), x.view()}, {gradient.returned()});
        s.accumulate(gradient, weight);
        s.context.node = nullptr;
        s.step();
    }
    Stream s;
    OpInfo log{"aten::log", "", OpClass::Other, false, 0};
    MadeUp x{0, 1}, y{-kInf, 0}, kept{0, 0}, gradient{kNan, 1};
    MadeUp weight{{1, 1}, kParameter};
    BirthId born = 0;
};

TEST_F(Hidden, ComesBackInTheGradient) {
    forward();
    s.loss(kept);
    backward();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.id, born);
    EXPECT_TRUE(s.only().birth.features.hidden);
    EXPECT_TRUE(s.only().birth.features.loss_known);
    EXPECT_EQ(s.only().birth.phase, Phase::Forward);
    EXPECT_EQ(s.only().into, EscapeInto::Gradient);
}

TEST_F(Hidden, ByTheValueItselfToo) {
    forward();
    s.loss(kept);
    s.context.node = "MulBackward0";
    s.op("aten::mul", {y.view()}, {gradient.returned()});
    s.accumulate(gradient, weight);
    s.context.node = nullptr;
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.id, born);
    EXPECT_TRUE(s.only().birth.features.hidden);
}

TEST_F(Hidden, NotWhatReachedTheLoss) {
    forward();
    s.loss(y);
    backward();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_FALSE(s.only().birth.features.hidden);
}

TEST(VerdictFeatures, PartOfTheLossIsWhatFollowsTheLastParameter) {
    for (const bool after : {true, false}) {
        Stream s;
        MadeUp x{-1}, y{kNan}, loss{kNan};
        s.context.touched = true;
        s.op("aten::log", {x.view()}, {y.returned()});
        s.op("aten::mm", {y.view()}, {loss.returned()});
        s.context.last_parameter_read = after ? OpSeq::None : OpSeq{1};
        s.loss(loss);
        ASSERT_EQ(s.outcome.escaped.size(), 1u);
        EXPECT_TRUE(s.only().birth.features.loss_known);
        EXPECT_EQ(s.only().birth.features.after_parameters, after);
        EXPECT_EQ(s.only().birth.features.into, EscapeInto::Loss);
    }
}

TEST(VerdictFeatures, TermOfALossIsPartOfItWhateverWasReadAfterIt) {
    for (const char* op : {"aten::neg", "aten::mm"}) {
        Stream s;
        MadeUp x{-1}, y{kNan}, loss{kNan};
        s.context.touched = true;
        s.op("aten::log", {x.view()}, {y.returned()});
        s.op(op, {y.view()}, {loss.returned()});
        s.context.last_parameter_read = OpSeq{1};
        s.loss(loss);
        ASSERT_EQ(s.outcome.escaped.size(), 1u);
        EXPECT_EQ(s.only().birth.features.after_parameters, std::string(op) == "aten::neg") << op;
    }
}

TEST(VerdictFeatures, InitialValueThatWasComputed) {
    Stream s;
    MadeUp count{0}, one{1}, bound{kInf}, y{kInf};
    s.context.in_module = false;
    s.grad_enabled = false;
    s.op("aten::div", {one.view(), count.view()}, {bound.returned()});
    s.grad_enabled = true;
    s.context.in_module = true;
    s.op("aten::mul", {bound.view(kParameter)}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.phase, Phase::Load) << "made of data, read as a parameter: its initial value";
    EXPECT_EQ(s.only().birth.op, "aten::div");
}

/// A program that samples from probabilities.
class Refused : public testing::Test {
  protected:
    Refused() {
        s.op("aten::log", {negative.view()}, {bad.returned()});
        s.op("aten::cat", {negative.view(), bad.view()}, {beside.returned()});
    }
    void fail(const char* op, const TensorView& operand) {
        s.verdict.op_failed(MadeUpOp(op, {operand}, {}).event(), s.context);
    }
    Stream s;
    MadeUp negative{-1}, bad{kNan}, beside{kNan}, fine{1};
};

TEST_F(Refused, WhatAnOpCouldNotTakeIsAWarning) {
    fail("aten::multinomial", bad.view());
    fail("aten::multinomial", bad.view());
    EXPECT_TRUE(s.outcome.escaped.empty()) << "it may be that the program goes on with it";
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Host);
    EXPECT_EQ(s.only().severity, Severity::Warning);
    const std::vector<std::string>& evidence = s.only().birth.evidence;
    EXPECT_EQ(std::count(evidence.begin(), evidence.end(), "`aten::multinomial` read it and failed"), 1);
}

TEST_F(Refused, OpThatFailsForAnotherReasonSaysNothing) {
    fail("aten::mm", fine.view());
    s.op("aten::nan_to_num_", {bad.view()}, {bad.written()});
    bad.values[0] = 0;
    fail("aten::mm", bad.view());
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

/// A program of which every step runs other code, and makes bad values there: what is kept of it is bounded, and the
/// last place is found as the first was.
TEST(Escapes, PlacesOfFindingsAreBounded) {
    Stream s;
    MadeUp negative{-1};
    constexpr StackId kFirst = 1000, kMany = 5000;
    const auto finding_at = [&](StackId stack) {
        MadeUp bad{kNan};
        s.outcome = {};
        s.context.stack = stack;
        s.op("aten::log", {negative.view()}, {bad.returned()});
        s.loss(bad);
        return s.outcome.escaped.size() == 1 && !s.outcome.escaped[0].again;
    };
    for (StackId stack = kFirst; stack < kFirst + kMany; ++stack) ASSERT_TRUE(finding_at(stack));
    EXPECT_FALSE(finding_at(kFirst + kMany - 1)) << "known";
    EXPECT_TRUE(finding_at(kFirst)) << "forgotten";
    const auto forgotten = s.verdict.forgotten();
    EXPECT_GT(forgotten.at("places"), 0);
    EXPECT_EQ(forgotten.at("births"), 0) << "what is over was swept";
}

}  // namespace
}  // namespace numsan
