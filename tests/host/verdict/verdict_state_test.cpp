// Bad values that no op was seen to make: whether they are a parameter's or the batch's, and what wrote them.
#include <gtest/gtest.h>

#include "host/cause/title.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TEST(VerdictState, ParameterThatNoOpMadeBadAfterAnUpdate) {
    Stream s;
    MadeUp batch{1, 1}, weight({1, 2}, kParameter), gradient{1, 1}, y{kNan, 2};
    s.context.in_module = false;
    s.accumulate(gradient, weight);
    s.context.step = 1;
    s.step();
    s.context.step = 2;
    weight.values[0] = kNan;
    s.op("aten::mul", {batch.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    const Birth& birth = s.only().birth;
    EXPECT_EQ(birth.mechanism, Mechanism::STATE);
    EXPECT_TRUE(birth.features.overwritten);
    EXPECT_EQ(birth.evidence.front(),
              "`aten::add_` left the parameter finite in step 1, and no op was seen to write it since");
    EXPECT_EQ(happened(birth),
              "it appeared in a parameter between two operators, first read by `aten::mul`, in 1 of 2 values");
}

TEST(VerdictState, ParameterThatWasBadLongAfterAnUpdateMayBeAnother) {
    Stream s;
    MadeUp batch{1, 1}, weight({1, 2}, kParameter), gradient{1, 1}, y{kNan, 2};
    s.accumulate(gradient, weight);
    s.context.step = 1;
    s.step();
    s.context.step = 3;
    weight.values[0] = kNan;
    s.op("aten::mul", {batch.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::STATE);
    EXPECT_FALSE(s.only().birth.features.overwritten) << "its address may have been another tensor's";
}

TEST(VerdictState, BadDataOfABatchThatRequiresAGradient) {
    Stream s;
    MadeUp batch({kNan, 1}, kParameter), weight({2, 2}, kParameter), y{kNan, 2};
    s.op("aten::mm", {batch.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(s.only().birth.phase, Phase::Data);
}

TEST(VerdictState, DataThatIsComputedAndThenRequiresAGradient) {
    Stream s;
    s.context.in_module = false;
    MadeUp zero{0}, batch{kInf, 1}, weight({2, 2}, kParameter), y{kInf, 2};
    s.op("aten::reciprocal", {zero.view()}, {batch.returned()});
    s.context.in_module = true;
    s.op("aten::mm", {batch.view(kParameter), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.phase, Phase::Data);
}

TEST(VerdictState, BadWeightOfALayer) {
    Stream s;
    MadeUp x({1, 1}, kParameter), weight({kNan, 2}, kParameter), y{kNan, 2};
    s.op("aten::mm", {x.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::STATE);
}

TEST(VerdictState, BadState) {
    Stream s;
    MadeUp batch{1, 1}, weight({kNan, 2}, kParameter), y{kNan, 2};
    s.op("aten::mul", {batch.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::STATE);
    EXPECT_EQ(s.only().birth.phase, Phase::Load);
}

}  // namespace
}  // namespace numsan
