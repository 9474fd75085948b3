#include "host/track/scaler_history.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(ScalerHistory, FindingItsScaleIsNoFault) {
    ScalerHistory h;
    EXPECT_FALSE(h.seen());
    for (double scale = 65536; scale > 1024; scale /= 2) h.updated(true, scale);
    EXPECT_TRUE(h.seen());
    EXPECT_FALSE(h.is_used_up());
    EXPECT_FALSE(h.is_stuck());
    h.updated(false, 1024);
    EXPECT_FALSE(h.never_stepped());
    EXPECT_EQ(h.skips(), 0);
    EXPECT_EQ(h.skipped(), 6);
    EXPECT_EQ(h.steps(), 7);
}

TEST(ScalerHistory, StuckIsInARow) {
    ScalerHistory h;
    for (int i = 0; i < 7; ++i) h.updated(true, 65536);
    h.updated(false, 65536);
    for (int i = 0; i < 7; ++i) h.updated(true, 65536);
    EXPECT_FALSE(h.is_stuck());
    h.updated(true, 65536);
    EXPECT_TRUE(h.is_stuck());
}

TEST(ScalerHistory, UsedUpFarBelowOneAndStillSkipping) {
    ScalerHistory h;
    for (const double scale : {0.5, 0.25, 0.125}) h.updated(true, scale);
    EXPECT_FALSE(h.is_used_up()) << "losses that are sums";
    h.updated(true, 1.0 / 2048);
    EXPECT_TRUE(h.is_used_up());
    h.updated(false, 1.0 / 2048);
    EXPECT_FALSE(h.is_used_up());
    h.updated(true, 1.0 / 4096);
    h.updated(true, 1.0 / 8192);
    EXPECT_FALSE(h.is_used_up()) << "two bad batches";
    h.updated(true, 1.0 / 16384);
    EXPECT_TRUE(h.is_used_up());
    h.updated(true, -1);
    EXPECT_FALSE(h.is_used_up()) << "nobody knows the scale";
}

TEST(ScalerHistory, RunWithoutAStep) {
    ScalerHistory h;
    h.updated(true, 4);
    h.updated(true, 2);
    EXPECT_FALSE(h.never_stepped()) << "two steps are not yet a run";
    h.updated(true, 1);
    EXPECT_TRUE(h.never_stepped());
}

TEST(ScalerHistory, OneBadLookSpoilsTheStep) {
    ScalerHistory h;
    h.looked(true);
    h.looked(false);
    EXPECT_TRUE(h.bad());
    h.updated(true, 4);
    EXPECT_FALSE(h.bad());
}

}  // namespace
}  // namespace numsan
