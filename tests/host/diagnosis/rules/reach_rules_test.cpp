// Weights that the training does not reach, and weights that it leaves alone on purpose.
#include <gtest/gtest.h>

#include "host/diagnosis/ranking.h"
#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

/// The first weight keeps its random values, a layer behind it is trained.
Signals kept_first_layer() {
    Signals signals = healthy_signals();
    ParameterSignals& first = signals.parameters[0];
    first.changed = false;
    first.initial = "random";
    first.feeds = first.feeds_trained = true;
    first.optimized = true;
    first.reads = static_cast<int64_t>(signals.steps.size());
    first.update.assign(signals.steps.size(), NAN);
    return signals;
}

TEST(ReachRules, GradientsWithoutAnyStepMissAStep) {
    Signals signals = healthy_signals();
    signals.optimizer_steps = 0;
    for (ParameterSignals& one : signals.parameters) {
        one.changed = false;
        one.initial = "random";
    }
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::MissingStep);
    EXPECT_EQ(faults[0].location->line, 30) << "backward()";
    EXPECT_EQ(faults[0].evidence[0], "64 backward passes gave gradients to 2 parameters, `model.0.weight` among them");
    signals.trend.count = 31;
    EXPECT_EQ(ids(signals), Ids{}) << "a check of gradients";
    signals.trend.count = 64;
    for (ParameterSignals& one : signals.parameters) one.initial = "";
    EXPECT_EQ(ids(signals), Ids{}) << "a model that was loaded, of whose inputs gradients are wanted";
}

TEST(ReachRules, AnOptimizerThatHoldsWhatDoesNotChangeWasGivenNoGradients) {
    Signals signals = healthy_signals();
    for (ParameterSignals& one : signals.parameters) {
        one.changed = false;
        one.optimized = true;
    }
    EXPECT_EQ(ids(signals), Ids{FaultId::ClearedGradients});
    signals.parameters[0].optimized = false;
    EXPECT_EQ(ids(signals), Ids{FaultId::IdleOptimizer}) << "it does not hold all";
    signals.parameters[0].optimized = true;
    signals.step_size.back() = 0;
    EXPECT_EQ(ids(signals), Ids{}) << "a rate of zero";
}

TEST(ReachRules, AWeightThatNoOptimizerHoldsIsLeftOut) {
    Signals signals = kept_first_layer();
    EXPECT_EQ(ids(signals), Ids{}) << "an optimizer holds it: it may be this step's loss alone that skips it";
    signals.parameters[0].optimized = false;
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::PartialOptimizer);
    EXPECT_EQ(faults[0].location->line, 31) << "step()";
    EXPECT_EQ(faults[0].evidence[0],
              "1 weight of random first values, `model.0.weight`, got gradients in 11 sampled steps up to step 32 and "
              "did not change");
    signals.parameters[0].initial = "";
    EXPECT_EQ(ids(signals), Ids{}) << "a loaded body, of which the head alone is trained";
    signals.parameters[0].initial = "random";
    signals.parameters[0].optimized = std::nullopt;
    EXPECT_EQ(ids(signals), Ids{}) << "it is not known";
    signals.parameters[0].optimized = false;
    signals.parameters[0].of_module = false;
    EXPECT_EQ(ids(signals), Ids{}) << "points at which the network is derived";
}

TEST(ReachRules, AFrozenLayerOfRandomValuesBeforeATrainedOneIsTold) {
    Signals signals = kept_first_layer();
    signals.parameters[0].needs_gradient = false;
    signals.parameters[0].gradient.assign(11, NAN);
    EXPECT_EQ(ids(signals), Ids{FaultId::FrozenLayer});
    signals.parameters[0].feeds_trained = false;
    EXPECT_EQ(ids(signals), Ids{}) << "a target that is random by design";
    signals.parameters[0].feeds_trained = true;
    signals.parameters[0].initial = "";
    EXPECT_EQ(ids(signals), Ids{}) << "it was loaded";
    signals.parameters[0].initial = "random";
    signals.parameters[1].initial = "zeros";
    EXPECT_EQ(ids(signals), Ids{}) << "an adapter is trained beside it";
}

TEST(ReachRules, ALayerThatNeedsGradientsAndGetsNoneIsDetached) {
    Signals signals = kept_first_layer();
    signals.parameters[0].gradient.assign(11, NAN);
    signals.parameters[0].detached_at = Place{"/home/me/model.py", 15, "forward", "x = x.detach()", {}};
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::DetachedLayer);
    EXPECT_EQ(faults[0].location->line, 15);
    signals.parameters[0].detached_at.reset();
    EXPECT_EQ(ruled_faults(signals).at(0).location->line, 10) << "where it is read";
    signals.parameters[0].reads = 5;
    EXPECT_EQ(ids(signals), Ids{}) << "in few of the steps: an evaluation that forgot no_grad()";
}

}  // namespace
}  // namespace numsan
