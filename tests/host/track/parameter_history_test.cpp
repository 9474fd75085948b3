// Growth of parameters since they were first written.
#include "host/track/parameter_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace numsan {
namespace {

/// Stands for a tensor: has an address of its own.
struct alignas(64) Weight {};

TEST(ParameterHistory, NothingWrittenNothingGrown) { EXPECT_EQ(ParameterHistory().growth(), 0); }

TEST(ParameterHistory, GrowthSinceTheFirstWriteOfTheRun) {
    ParameterHistory history;
    const Weight weight;
    history.add(&weight, 0.5, true);
    EXPECT_EQ(history.growth(), 1);
    history.add(&weight, 5, true);
    history.add(&weight, 50, true);
    EXPECT_EQ(history.growth(), 100);
    history.add(&weight, 1, true);
    EXPECT_EQ(history.growth(), 2) << "now, not at its largest";
}

TEST(ParameterHistory, InitialisingIsNotGrowing) {
    ParameterHistory history;
    const Weight weight;
    history.add(&weight, 0.001, false);
    history.add(&weight, 10, false);
    EXPECT_EQ(history.growth(), 1);
    history.add(&weight, 20, true);
    EXPECT_EQ(history.growth(), 2);
}

TEST(ParameterHistory, ZerosAndNaNsSayNothing) {
    ParameterHistory history;
    const Weight bias;
    history.add(&bias, 0, true);
    history.add(&bias, std::nan(""), true);
    EXPECT_EQ(history.growth(), 0);
    history.add(&bias, 2, true);
    history.add(&bias, 0, true);
    EXPECT_EQ(history.growth(), 1);
}

TEST(ParameterHistory, LargestOverAllParameters) {
    ParameterHistory history;
    const std::vector<Weight> weights(8);
    for (const Weight& weight : weights) history.add(&weight, 1, true);
    history.add(&weights[3], 40, true);
    history.add(&weights[5], 7, true);
    EXPECT_EQ(history.growth(), 40);
}

TEST(ParameterHistory, ForgetsRatherThanMixTwoParameters) {
    ParameterHistory history;
    // More than it has room for, so that some share a place.
    const std::vector<Weight> weights(1 << 15);
    for (const Weight& weight : weights) history.add(&weight, 1000, true);
    for (const Weight& weight : weights) history.add(&weight, 1, true);
    EXPECT_LE(history.growth(), 1);
    EXPECT_GT(history.growth(), 0);
}

}  // namespace
}  // namespace numsan
