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

/// A product of a batch with a weight, which nn.Linear transposes; the batch requires a gradient.
struct Linear {
    Stream s;
    uint32_t facts[2] = {0, kViewOfParameter};

    Linear() { s.context.autograd_facts = facts; }
    const Birth& read(const MadeUp& batch, const MadeUp& weight, uint32_t weight_flags = kRequiresGrad) {
        MadeUp y{kNan, 2};
        s.op("aten::mm", {batch.view(kParameter), weight.view(weight_flags)}, {y.returned()});
        s.loss(y);
        EXPECT_EQ(s.outcome.escaped.size(), 1u);
        return s.outcome.escaped.at(0).birth;
    }
};

TEST(VerdictState, BadDataOfABatchThatRequiresAGradient) {
    Linear layer;
    const MadeUp batch{kNan, 1}, weight{2, 2};
    const Birth& birth = layer.read(batch, weight);
    EXPECT_EQ(birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(birth.phase, Phase::Data);
}

TEST(VerdictState, DataThatIsComputedAndThenRequiresAGradient) {
    Linear layer;
    const MadeUp zero{0}, batch{kInf, kNan}, weight{2, 2};
    layer.s.context.in_module = false;
    layer.s.op("aten::reciprocal", {zero.view()}, {batch.returned()});
    layer.s.context.in_module = true;
    EXPECT_EQ(layer.read(batch, weight).phase, Phase::Data);
}

TEST(VerdictState, BadWeightOfALayer) {
    Linear layer;
    const MadeUp batch{1, 1}, weight{kNan, 2};
    EXPECT_EQ(layer.read(batch, weight).mechanism, Mechanism::STATE);
}

TEST(VerdictState, FirstOfTwoParametersMayBeAWeight) {
    Linear merge;
    merge.facts[1] = 0;
    const MadeUp up{kNan, 1}, down{2, 2};
    EXPECT_EQ(merge.read(up, down, kParameter).mechanism, Mechanism::STATE) << "factors of a low-rank update";
}

TEST(VerdictState, LeafThatAnUpdateWroteIsAParameterWhereverItStands) {
    Linear factors;
    MadeUp users({1, 1}, kParameter), gradient{1, 1};
    const MadeUp items{2, 2};
    factors.s.context.step = 1;
    factors.s.accumulate(gradient, users);
    factors.s.step();
    factors.s.context.step = 2;
    users.values[0] = kNan;
    EXPECT_TRUE(factors.read(users, items).features.overwritten);
}

TEST(VerdictState, ACopyMayBeThatOfACheckpoint) {
    Stream s;
    MadeUp batch{1, 1}, weight({1, 2}, kParameter), checkpoint{1, 2}, y{kNan, 2};
    s.context.in_optimizer = true;  // as a load is: gradients are off, and it writes a parameter
    s.grad_enabled = false;
    s.op("aten::copy_", {weight.view(), checkpoint.view()}, {weight.written()}, OpClass::Overwriting);
    s.context.in_optimizer = false;
    s.grad_enabled = true;
    s.context.step = 1;
    weight.values[0] = kNan;
    s.op("aten::mul", {batch.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::STATE);
    EXPECT_FALSE(s.only().birth.features.overwritten);
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
