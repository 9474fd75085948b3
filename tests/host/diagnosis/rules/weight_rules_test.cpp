// What weights start from, and what is near to a bad start.
#include <gtest/gtest.h>

#include "host/diagnosis/ranking.h"
#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

/// Both weights start at random values of this size.
Signals started_at(double size) {
    Signals signals = healthy_signals();
    for (ParameterSignals& one : signals.parameters) {
        one.initial = "random";
        one.weight.assign(signals.steps.size(), size);
        one.made_at = Place{"/home/me/model.py", 5, "make", "init.normal_(w)", {}};
    }
    return signals;
}

TEST(WeightRules, WeightsThatMakeSumsManyTimesLargerStartTooLarge) {
    Signals signals = started_at(3);
    signals.loss.front() = 40;
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::LargeWeights);
    EXPECT_EQ(faults[0].location->line, 5);
    signals.loss.front() = 2.3;
    EXPECT_EQ(ids(signals), Ids{}) << "the program scales what they make";
    signals.losses[0].op = "aten::mse_loss";
    EXPECT_EQ(ids(signals), Ids{}) << "how large predictions are is not known";
    signals.losses[0].scale = 40;
    EXPECT_EQ(ids(signals), Ids{FaultId::LargeWeights});
    EXPECT_EQ(ids(started_at(0.5)), Ids{});
    Signals loaded = started_at(3);
    loaded.loss.front() = 40;
    loaded.parameters[0].initial = "";
    loaded.parameters[1].initial = "";
    EXPECT_EQ(ids(loaded), Ids{}) << "trained values may be as they like";
}

TEST(WeightRules, WeightsThatMakeSumsManyTimesSmallerStartTooSmall) {
    EXPECT_EQ(ids(started_at(1e-4)), Ids{FaultId::SmallWeights});
    EXPECT_EQ(ids(started_at(0.02)), Ids{});
    Signals signals = started_at(1e-4);
    signals.parameters[1].weight.assign(11, 0.3);
    signals.parameters.push_back(signals.parameters[1]);
    EXPECT_EQ(ids(signals), Ids{}) << "a last layer may start small";
    signals.parameters.pop_back();
    EXPECT_EQ(ids(signals), Ids{}) << "one of two";
    signals = started_at(1e-4);
    signals.parameters.push_back(signals.parameters[0]);
    signals.parameters.back().initial = "";
    EXPECT_EQ(ids(signals), Ids{}) << "heads of a body that was loaded";
}

TEST(WeightRules, NearlyAllWeightsOfZeroOrOneThatStaysAreAFault) {
    Signals signals = started_at(0);
    for (ParameterSignals& one : signals.parameters) one.initial = "zeros";
    EXPECT_EQ(ids(signals), Ids{}) << "two heads of a linear model";
    signals.parameters[0].feeds = true;
    EXPECT_EQ(ids(signals), Ids{FaultId::ZeroWeights});
    signals = started_at(0.3);
    signals.parameters[0].initial = "zeros";
    signals.parameters[0].weight[0] = 0;
    EXPECT_EQ(ids(signals), Ids{}) << "an adapter, or the last layer of a branch";
    signals.parameters[0].gradient.assign(11, 0);
    EXPECT_EQ(ids(signals), Ids{FaultId::ZeroWeights});
}

TEST(WeightRules, WeightsThatShrinkWhileNothingIsLearnedAreOverRegularised) {
    Signals signals = idle_signals();
    for (ParameterSignals& one : signals.parameters) one.weight.back() = 0.005;
    EXPECT_EQ(ids(signals), Ids{FaultId::StrongRegularisation});
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "sparse on purpose: the loss falls";
}

TEST(WeightRules, ADropoutOfNearlyAllIsTold) {
    Signals signals = healthy_signals();
    signals.activations[0].dropped.assign(11, 0.97);
    EXPECT_EQ(ids(signals), Ids{FaultId::StrongRegularisation});
    signals.activations[0].dropped.assign(11, NAN);
    signals.activations[0].dropped[0] = 0.97;
    EXPECT_EQ(ids(signals), Ids{}) << "in one step";
}

TEST(WeightRules, LargeInputsAreTheFaultWhereNothingIsLearned) {
    Signals signals = idle_signals();
    signals.parameters[0].input.assign(11, 120);
    EXPECT_EQ(ids(signals), Ids{FaultId::UnscaledInputs});
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "a normalisation follows, or it learns all the same";
    signals.activations[0].zeros.assign(11, 1);
    EXPECT_EQ(ids(signals), Ids{}) << "dead from the first step on, by its weights";
    signals.activations[0].zeros[0] = 0.5;
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u) << "it has killed a layer, though the loss fell from where it began";
    EXPECT_EQ(faults[0].id, FaultId::UnscaledInputs);
    EXPECT_EQ(faults[0].evidence[1], "a rectifier that was alive in the first step hands on nothing but zeros since");
    signals.trend.places = 2;
    for (const FaultId id : ids(signals)) EXPECT_NE(id, FaultId::UnscaledInputs) << "of two losses little is known";
    signals = idle_signals();
    signals.parameters[0].input.assign(11, 3);
    EXPECT_EQ(ids(signals), Ids{});
}

}  // namespace
}  // namespace numsan
