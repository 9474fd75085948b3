// Values that turned bad between two ops, in memory that is no parameter's.
#include <gtest/gtest.h>

#include "host/cause/title.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

struct WrittenOver {
    Stream s;
    MadeUp batch{0.5f, 1}, weight = MadeUp({1, 2}, kParameter), hidden{-1.25f, 0.375f, 2}, y{kNan, 2};

    /// `hidden` is computed from the weight, or from the batch alone.
    void make(bool touched) {
        s.context.touched = touched;
        s.op("aten::mul", {batch.view()}, {hidden.returned()});
        s.context.touched = true;
    }
    Birth read() {
        s.op("aten::mm", {hidden.view(), weight.view()}, {y.returned()});
        s.loss(y);
        return s.only().birth;
    }
};

TEST(WrittenOver, WhatWasComputedFromAParameterIsNoData) {
    WrittenOver t;
    t.make(true);
    t.hidden.values[0] = kNan;
    const Birth birth = t.read();
    EXPECT_EQ(birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(birth.phase, Phase::Forward);
    EXPECT_TRUE(birth.features.overwritten);
    EXPECT_EQ(birth.left_finite, 1u) << "the stack of the product";
    EXPECT_EQ(birth.evidence.front(),
              "`aten::mul` left it finite in the same step, and no op was seen to write it since: its finite values "
              "still end where they ended then");
}

TEST(WrittenOver, WhatNoParameterHadTouchedIsData) {
    WrittenOver t;
    t.make(false);
    t.hidden.values[0] = kNan;
    const Birth birth = t.read();
    EXPECT_EQ(birth.phase, Phase::Data);
    EXPECT_FALSE(birth.features.overwritten);
    EXPECT_TRUE(birth.features.written_over);
    EXPECT_EQ(happened(birth),
              "it appeared in a tensor between two operators, first read by `aten::mm`, in 1 of 3 values");
}

TEST(WrittenOver, AnotherRangeIsAnotherTensorAtItsAddress) {
    for (const float other : {0.5f, 0.25f}) {
        WrittenOver t;
        t.make(true);
        t.hidden.values[0] = kNan;
        t.hidden.values[1] = other;
        EXPECT_FALSE(t.read().features.written_over) << other;
    }
}

TEST(WrittenOver, OneEndOfTheRangeIsEnoughForWhatAutogradHasANodeOf) {
    for (const bool computed : {true, false}) {
        WrittenOver t;
        if (computed) t.hidden.flags |= kRequiresGrad;
        t.make(true);
        t.hidden.values[2] = kNan;  // the largest
        EXPECT_EQ(t.read().features.written_over, computed);
    }
}

TEST(WrittenOver, RangesOfWholeNumbersAreMany) {
    WrittenOver t;
    t.hidden.values = {-1, 1, 2};
    t.make(true);
    t.hidden.values[0] = kNan;
    EXPECT_FALSE(t.read().features.written_over);
}

TEST(WrittenOver, AnotherStepsWriteMayBeAnotherTensors) {
    WrittenOver t;
    t.make(true);
    t.s.context.step = 1;
    t.s.step();
    t.hidden.values[0] = kNan;
    EXPECT_FALSE(t.read().features.written_over);
}

}  // namespace
}  // namespace numsan
