// Growth of parameters since they were first written.
#include "host/track/parameter_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace numsan {
namespace {

/// Stands for a tensor: has an address of its own.
struct alignas(64) Weight {};

/// `before`: what stood there, where the first write that is seen is an update.
class Parameters {
  public:
    void begin(const Weight& weight, double at) {
        history_.add(&weight, at, false, [] { return -1.0; });
    }
    void update(const Weight& weight, double to, double before = -1) {
        history_.add(&weight, to, true, [before] { return before; });
    }
    double times() const { return history_.growth().times; }
    const ParameterHistory& history() const { return history_; }

  private:
    ParameterHistory history_;
};

TEST(ParameterHistory, NothingWrittenNothingGrown) { EXPECT_EQ(Parameters().times(), 0); }

TEST(ParameterHistory, GrowthSinceTrainingBegan) {
    Parameters parameters;
    const Weight weight;
    parameters.update(weight, 0.5, 0.5);
    EXPECT_EQ(parameters.times(), 1);
    parameters.update(weight, 5);
    parameters.update(weight, 50);
    EXPECT_EQ(parameters.times(), 100);
    parameters.update(weight, 1);
    EXPECT_EQ(parameters.times(), 2) << "now, not at its largest";
}

TEST(ParameterHistory, InitialisingIsNotGrowing) {
    Parameters parameters;
    const Weight weight;
    parameters.begin(weight, 0.001);
    parameters.begin(weight, 10);
    EXPECT_EQ(parameters.times(), 1);
    parameters.update(weight, 20);
    EXPECT_EQ(parameters.times(), 2);
}

TEST(ParameterHistory, ABiasThatIsInitialisedAnewToZerosHasNotGrown) {
    Parameters parameters;
    const Weight weight, bias;
    parameters.begin(weight, 0.5);
    parameters.begin(bias, 0.5);
    parameters.begin(bias, 0);
    EXPECT_EQ(parameters.times(), 1);
}

TEST(ParameterHistory, FirstSeenAsAnUpdateItBeganWithWhatStoodThere) {
    Parameters parameters;
    const Weight weight;
    parameters.update(weight, 60, 2);
    EXPECT_EQ(parameters.times(), 30);
    EXPECT_EQ(parameters.history().largest_start(), 2);
}

TEST(ParameterHistory, ABiasThatBeginsAtZeroGrowsToTheSizeOfTheOthers) {
    Parameters parameters;
    const Weight weight;
    const Weight bias;
    const Weight adapter;
    parameters.begin(weight, 0.5);
    parameters.begin(bias, 0);
    parameters.update(weight, 0.5);
    for (const double warming_up : {1e-9, 1e-8, 1e-6, 1e-3, 0.1}) {
        parameters.update(bias, warming_up);
        parameters.update(adapter, warming_up, 0);
    }
    EXPECT_EQ(parameters.times(), 20);
    const ParameterGrowth growth = parameters.history().growth();
    EXPECT_TRUE(growth.from_near_zero);
    EXPECT_EQ(growth.now, 0.1);
    EXPECT_EQ(growth.largest_start, 0.5);
    parameters.update(bias, 5e6);
    EXPECT_EQ(parameters.times(), 1e9) << "that one ran away";
}

TEST(ParameterHistory, AScaleThatBeginsSmallIsMeantToGrow) {
    Parameters parameters;
    const Weight weight;
    const Weight scale;
    parameters.begin(weight, 1);
    parameters.begin(scale, 1e-6);
    parameters.update(weight, 1);
    parameters.update(scale, 0.1);
    EXPECT_EQ(parameters.times(), 10);
}

TEST(ParameterHistory, WhereAllBeginAtZeroNothingIsSaid) {
    Parameters parameters;
    const Weight weight;
    parameters.begin(weight, 0);
    parameters.update(weight, 1e-5);
    parameters.update(weight, 3);
    EXPECT_EQ(parameters.times(), 0);
}

TEST(ParameterHistory, ZerosAndNaNsAreNoGrowth) {
    Parameters parameters;
    const Weight bias;
    parameters.update(bias, std::nan(""), 2);
    EXPECT_EQ(parameters.times(), 0);
    parameters.update(bias, 2, 2);
    parameters.update(bias, 0);
    EXPECT_EQ(parameters.times(), 1);
}

TEST(ParameterHistory, LargestOverAllParameters) {
    Parameters parameters;
    const std::vector<Weight> weights(8);
    for (const Weight& weight : weights) parameters.update(weight, 1, 1);
    parameters.update(weights[3], 40);
    parameters.update(weights[5], 7);
    EXPECT_EQ(parameters.times(), 40);
    EXPECT_FALSE(parameters.history().growth().from_near_zero);
}

TEST(ParameterHistory, ForgetsRatherThanMixTwoParameters) {
    Parameters parameters;
    // More than it has room for, so that some share a place.
    const std::vector<Weight> weights(1 << 15);
    for (const Weight& weight : weights) parameters.update(weight, 1000, 1000);
    for (const Weight& weight : weights) parameters.update(weight, 1, 1);
    EXPECT_LE(parameters.times(), 1);
    EXPECT_GT(parameters.times(), 0);
}

}  // namespace
}  // namespace numsan
