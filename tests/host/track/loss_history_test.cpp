// Divergence: three steps of growth and three decades over what is kept.
#include "host/track/loss_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>

namespace numsan {
namespace {

double divergence(std::initializer_list<double> values) {
    LossHistory history;
    for (const double value : values) history.add(value);
    return history.divergence();
}

bool diverging(std::initializer_list<double> values) { return divergence(values) > 0; }

TEST(LossHistory, NeedsFourValues) {
    EXPECT_FALSE(diverging({}));
    EXPECT_FALSE(diverging({1, 1e3, 1e6}));
    EXPECT_TRUE(diverging({1, 10, 1e3, 1e6}));
}

TEST(LossHistory, NeedsGrowthToTheEnd) {
    EXPECT_FALSE(diverging({1, 10, 1e6, 1e3}));
    EXPECT_FALSE(diverging({1, 1e6, 10, 1e6}));
    EXPECT_FALSE(diverging({5, 5, 5, 5, 5}));
}

TEST(LossHistory, NeedsThreeDecades) {
    EXPECT_FALSE(diverging({1, 10, 100, 999}));
    EXPECT_EQ(divergence({1, 10, 100, 1000}), 1000);
    EXPECT_EQ(divergence({4, 2, 100, 1000, 5000}), 2500);
}

TEST(LossHistory, LooksAtMagnitudes) { EXPECT_TRUE(diverging({1, -10, 1e3, -1e6})); }

TEST(LossHistory, WhatIsToldCountsWhereNoBackwardPassStarted) {
    LossHistory told;
    for (const double value : {1., 10., 1e3, 1e6}) told.tell(value);
    EXPECT_EQ(told.divergence(), 1e6);
    told.tell(std::nan(""));
    EXPECT_EQ(told.divergence(), 1e6) << "what is not finite is no magnitude";
    LossHistory both;
    for (const double value : {1., 10., 1e3, 1e6}) {
        both.add(value);
        both.tell(value);
    }
    EXPECT_EQ(both.divergence(), 1e6) << "the same value twice would be no growth";
}

TEST(LossHistory, ForgetsWhatIsOld) {
    LossHistory history;
    history.add(1e-3);
    for (int i = 0; i < 32; ++i) history.add(100 + i);
    EXPECT_EQ(history.divergence(), 0);
    history.add(1e6);
    EXPECT_GT(history.divergence(), 0);
}

}  // namespace
}  // namespace numsan
