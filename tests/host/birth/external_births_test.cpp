// What compiled regions hand out: one birth, and none of its own where what they were given was bad.
#include <gtest/gtest.h>

#include <string>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// Operators that read what kernels of a region wrote.
struct Region {
    Stream s;
    MadeUp weight = MadeUp({1}, kParameter), buffer{kNan}, other{kNan}, out{kNan}, loss = MadeUp({kNan}, kRequiresGrad);

    BirthId read(MadeUp& from, MadeUp& to) {
        s.context.stack = kGeneratedStack;
        const BirthId born = s.op("aten::mm", {from.view(), weight.view()}, {to.returned()});
        s.context.stack = 1;
        return born;
    }
};

TEST(BirthsExternal, OperatorsThatGeneratedCodeCallsReadWhatItsKernelsWrote) {
    Region r;
    r.s.op("aten::empty", {}, {r.buffer.returned()}, OpClass::Allocation);  // kernels write it, no op does
    r.read(r.buffer, r.loss);
    r.s.loss(r.loss);
    ASSERT_EQ(r.s.outcome.escaped.size(), 1u);
    const Birth& birth = r.s.only().birth;
    EXPECT_EQ(birth.op, kCompiledRegion);
    EXPECT_EQ(birth.features.op, kCompiledRegion) << "the reader's advice is not its";
    EXPECT_EQ(birth.phase, Phase::Forward);
}

TEST(BirthsExternal, WhatARegionHandsOutTwiceIsOneBirth) {
    Region r;
    EXPECT_NE(r.read(r.buffer, r.out), 0u);
    MadeUp more{kNan};
    EXPECT_EQ(r.read(r.other, more), r.read(r.buffer, r.out));
    r.s.verdict.forget(r.out.view());
    r.s.verdict.forget(more.view());
    EXPECT_EQ(r.s.verdict.counts().births, 1);
}

TEST(BirthsExternal, AnotherStepsRegionIsAnotherBirth) {
    Region r;
    r.read(r.buffer, r.out);
    ++r.s.context.step;
    MadeUp later{kNan}, result{kNan};
    r.read(later, result);
    EXPECT_EQ(r.s.verdict.counts().births, 2);
}

TEST(BirthsExternal, ParametersThatAreBadExplainWhatARegionMakes) {
    Region r;
    MadeUp zero{0}, update{kNan};
    const BirthId born = r.s.op("aten::div", {zero.view(), zero.view()}, {update.returned()});
    r.weight.values[0] = kNan;
    r.s.op("aten::add_", {r.weight.view(), update.view()}, {r.weight.written()});
    r.s.context.step += 2;
    r.s.context.stack = kGeneratedStack;
    EXPECT_EQ(r.s.op("aten::mm", {r.buffer.view()}, {r.out.returned()}), born);
    EXPECT_EQ(r.s.verdict.counts().births, 1);
}

TEST(BirthsExternal, ABadLossExplainsTheGradientsOfARegion) {
    for (const bool bad : {false, true}) {
        Region r;
        MadeUp zero{0}, gradient{kNan};
        r.loss.values[0] = bad ? kNan : 1;
        r.s.op("aten::div", {zero.view(), zero.view()}, {r.loss.returned()});
        r.s.loss(r.loss);
        r.s.context.after_compiled = true;
        r.s.context.node = "torch::autograd::AccumulateGrad";
        r.s.accumulate(gradient, r.weight);
        r.s.context.node = nullptr;
        r.s.context.after_compiled = false;
        r.s.step();
        r.s.finish();
        ASSERT_EQ(r.s.outcome.escaped.size(), 1u) << bad;
        EXPECT_EQ(r.s.only().birth.op, bad ? "aten::div" : kCompiledRegion);
        EXPECT_EQ(r.s.only().birth.phase, bad ? Phase::Forward : Phase::Backward);
    }
}

}  // namespace
}  // namespace numsan
