// Which step an op was part of.
#include "host/track/step_starts.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(StepStarts, NothingWasSeen) { EXPECT_EQ(StepStarts().step_of(OpSeq{7}), -1); }

TEST(StepStarts, OpsBetweenTheStarts) {
    StepStarts starts;
    starts.op(0, OpSeq{0});
    starts.op(0, OpSeq{5});
    starts.op(1, OpSeq{10});
    starts.op(3, OpSeq{20});
    starts.op(1, OpSeq{21});
    EXPECT_EQ(starts.step_of(OpSeq{0}), 0);
    EXPECT_EQ(starts.step_of(OpSeq{9}), 0);
    EXPECT_EQ(starts.step_of(OpSeq{10}), 1);
    EXPECT_EQ(starts.step_of(OpSeq{19}), 1);
    EXPECT_EQ(starts.step_of(OpSeq{100}), 3) << "what is told late changes nothing";
}

TEST(StepStarts, ForgetsTheOldest) {
    StepStarts starts;
    for (int64_t step = 0; step < 2000; ++step) starts.op(step, OpSeq{10 * step});
    EXPECT_EQ(starts.step_of(OpSeq{19995}), 1999);
    EXPECT_EQ(starts.step_of(OpSeq{15}), -1);
}

}  // namespace
}  // namespace numsan
