// What compiled regions hand out: one birth, and none of its own where what they were given was bad.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
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

/// A region whose graph was run once more.
struct Replayed : Region {
    MadeUp operand{-1}, replayed{kNan};

    BirthId replay() {
        s.context.stack = kReplayStack;
        const BirthId born = s.op("aten::log", {operand.view()}, {replayed.returned()});
        s.context.stack = 1;
        return born;
    }
    void hand_back(MadeUp& from, MadeUp& to) {
        s.context.stack = kRegionStack;
        s.op(kCompiledRegion, {from.view(), to.view()}, {to.written()}, OpClass::Region);
        s.context.stack = 1;
    }
    /// What a loss that is made of it goes back to.
    Birth found_in(MadeUp& from) {
        s.op("aten::sum", {from.view()}, {loss.returned()});
        s.loss(loss);
        return s.only().birth;
    }
};

TEST(BirthsExternal, WhatTheGraphMadeIsWhatTheRegionHandsBack) {
    Replayed r;
    r.replay();
    r.hand_back(r.replayed, r.out);
    const Birth birth = r.found_in(r.out);
    EXPECT_EQ(birth.op, "aten::log");
    EXPECT_TRUE(birth.features.replayed) << "whether it ran before is not known";
    EXPECT_NE(std::find(birth.evidence.begin(), birth.evidence.end(),
                        "torch.compile made kernels of this code: its graph was run once more, op by op, on what the "
                        "kernels were given"),
              birth.evidence.end());
}

TEST(BirthsExternal, OpsThatTheRegionCallsItselfMakeNoBirthBesideIt) {
    Replayed r;
    r.s.context.stack = kRegionStack;
    EXPECT_NE(r.s.op("aten::mm", {r.buffer.view()}, {r.other.returned()}), 0u);
    r.s.context.stack = 1;
    const BirthId born = r.replay();
    r.hand_back(r.replayed, r.out);
    EXPECT_EQ(r.s.verdict.counts().births, 1);
    MadeUp sum{kNan};
    EXPECT_EQ(r.s.op("aten::sum", {r.other.view()}, {sum.returned()}), born) << "a buffer that it keeps";
}

TEST(BirthsExternal, AnotherRegionsBirthStays) {
    Replayed r;
    r.read(r.buffer, r.other);
    r.replay();
    r.hand_back(r.replayed, r.out);
    EXPECT_EQ(r.s.verdict.counts().births, 2);
    EXPECT_EQ(r.found_in(r.other).op, kCompiledRegion);
}

TEST(BirthsExternal, KindsThatTheGraphDidNotMakeComeOfThoseThatItMade) {
    Replayed r;
    r.operand.values[0] = 0;
    r.replayed.values[0] = -std::numeric_limits<float>::infinity();
    r.replay();
    r.hand_back(r.replayed, r.out);
    EXPECT_EQ(r.found_in(r.out).op, "aten::log");
    EXPECT_EQ(r.s.verdict.counts().births, 1);
}

TEST(BirthsExternal, WhatARegionWasGivenComesFromOutside) {
    Replayed r;
    r.hand_back(r.replayed, r.out);  // no op has read it before
    const Birth birth = r.found_in(r.out);
    EXPECT_EQ(birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(birth.reader, kCompiledRegion);
}

TEST(BirthsExternal, WhatAPackageMadeIsItsOwnOperand) {
    Replayed r;
    MadeUp earlier{kNan};
    r.s.op("aten::log", {r.operand.view()}, {earlier.returned()});  // lives on, and is not what the package was given
    r.s.context.stack = kPackageStack;
    r.s.op(kCompiledRegion, {r.out.view(), r.out.view()}, {r.out.written()}, OpClass::Region);
    r.s.context.stack = 1;
    const Birth birth = r.found_in(r.out);
    EXPECT_EQ(birth.op, kCompiledRegion);
    EXPECT_TRUE(birth.features.package);
    EXPECT_EQ(birth.evidence.front(),
              "it came out of a package of kernels that AOTInductor wrote: its ops and its weights are not seen, and "
              "the line is where it was called");
}

TEST(BirthsExternal, AMaskOfInfinitiesExplainsNoNaN) {
    Replayed r;
    MadeUp mask{-std::numeric_limits<float>::infinity(), 0};
    r.s.infinite_scalar = true;
    r.s.op("aten::full", {}, {mask.returned()}, OpClass::Constant);
    r.s.infinite_scalar = false;
    r.hand_back(mask, r.out);
    EXPECT_EQ(r.found_in(r.out).op, kCompiledRegion);
}

TEST(BirthsExternal, WhatARegionMadeOfFiniteValuesIsItsOwnOperand) {
    Replayed r;
    r.hand_back(r.out, r.out);
    const Birth birth = r.found_in(r.out);
    EXPECT_EQ(birth.op, kCompiledRegion);
    EXPECT_FALSE(birth.features.package);
    EXPECT_EQ(birth.evidence.front(),
              "it came out of a region that torch.compile turned into kernels of its own: its ops are not seen, and "
              "the line is where it was called");
}

TEST(BirthsExternal, AnInfinityThatTheProgramWroteIsNotWhatARegionMade) {
    Replayed r;
    r.replayed.values[0] = r.out.values[0] = -std::numeric_limits<float>::infinity();
    r.s.infinite_scalar = true;
    r.s.op("aten::full", {}, {r.replayed.returned()}, OpClass::Constant);
    r.s.infinite_scalar = false;
    r.hand_back(r.replayed, r.out);
    EXPECT_EQ(r.s.verdict.counts().births, 0);
}

}  // namespace
}  // namespace numsan
