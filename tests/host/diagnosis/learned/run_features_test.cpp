// What the learned model reads of a run.
#include "host/diagnosis/learned/run_features.h"

#include <gtest/gtest.h>

#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

TEST(RunFeatures, OfNothingAreNotKnown) {
    const RunFeatures features = features_of(Signals{});
    EXPECT_TRUE(std::isnan(features.update_median));
    EXPECT_TRUE(std::isnan(features.loss_spike));
    EXPECT_TRUE(std::isnan(features.zeros_largest));
    EXPECT_TRUE(std::isnan(features.unchanged));
    EXPECT_EQ(features.same_labels, 0);
}

TEST(RunFeatures, OfTheLoss) {
    Signals signals = healthy_signals();
    signals.loss = {2, 4, NAN, 1, 1, 1, 1, 1, 1, 3, 0.5};
    const RunFeatures features = features_of(signals);
    EXPECT_DOUBLE_EQ(features.loss_ratio, 0.25);
    EXPECT_DOUBLE_EQ(features.loss_ratio_first, 0.25);
    EXPECT_DOUBLE_EQ(features.loss_lowest, 0.2);
    EXPECT_DOUBLE_EQ(features.loss_spike, 2);
    EXPECT_DOUBLE_EQ(features.loss_rise, 3) << "from 1 to 3";
    EXPECT_DOUBLE_EQ(features.loss_unknown, 1 - 10.0 / 11);
    EXPECT_EQ(features.loss_places, 1);
    EXPECT_DOUBLE_EQ(features.loss_of_guess, 0.5 / std::log(static_cast<double>(signals.losses[0].classes)));
}

TEST(RunFeatures, OfWeights) {
    Signals signals = healthy_signals();
    signals.parameters[0].gradient.assign(signals.steps.size(), 0.001);
    signals.parameters[1].weight.back() = 0.4;
    signals.parameters[1].shape = {4, 16};
    ParameterSignals bias = signals.parameters[0];
    bias.shape = {8};
    bias.update.assign(signals.steps.size(), 5);
    bias.changed = bias.needs_gradient = false;
    signals.parameters.push_back(bias);
    const RunFeatures features = features_of(signals);
    EXPECT_DOUBLE_EQ(features.update_largest, 1e-3) << "a bias is no weight";
    EXPECT_DOUBLE_EQ(features.gradient_smallest, 0.01);
    EXPECT_DOUBLE_EQ(features.gradient_fall, 0.1);
    EXPECT_DOUBLE_EQ(features.weight_swell, 4);
    EXPECT_DOUBLE_EQ(features.gain_smallest, 0.1 * std::sqrt(8));
    EXPECT_DOUBLE_EQ(features.gain_largest, 0.1 * std::sqrt(16));
    EXPECT_DOUBLE_EQ(features.unchanged, 1.0 / 3);
    EXPECT_DOUBLE_EQ(features.frozen, 1.0 / 3);
    EXPECT_DOUBLE_EQ(features.carried, 0);
    EXPECT_TRUE(std::isnan(features.input));
}

TEST(RunFeatures, AreFloatsOrNotKnown) {
    Signals signals = healthy_signals();
    signals.parameters[0].gradient.assign(signals.steps.size(), 1e300);
    signals.parameters[1].weight.assign(signals.steps.size(), 1e-300);
    const RunFeatures features = features_of(signals);
    EXPECT_EQ(features.gradient_highest, kLargestFeature);
    for (const RunFeature& one : kRunFeatures) {
        const double value = features.*one.value;
        EXPECT_TRUE(std::isnan(value) || std::abs(value) <= kLargestFeature) << one.key;
    }
}

TEST(RunFeatures, OfActivationsAndLabels) {
    Signals signals = healthy_signals();
    signals.activations[0].at_limit = {0.1, 0.2, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    signals.losses[0].labels = 64;
    signals.losses[0].steps = 4;
    RunFeatures features = features_of(signals);
    EXPECT_DOUBLE_EQ(features.zeros_largest, 0.5);
    EXPECT_DOUBLE_EQ(features.first_at_limit, 0.1);
    EXPECT_DOUBLE_EQ(features.at_limit, 0.1) << "of two the lower one";
    EXPECT_DOUBLE_EQ(features.activations, 0.5);
    EXPECT_DOUBLE_EQ(features.labels_a_step, 16);
    EXPECT_EQ(features.activated_twice, 0);
    signals.losses[0].made_by = "aten::_softmax";
    EXPECT_EQ(features_of(signals).activated_twice, 1);
    signals.losses[0].op = "aten::nll_loss_forward";
    signals.losses[0].made_by = "aten::_log_softmax";
    EXPECT_EQ(features_of(signals).activated_twice, 0);
}

}  // namespace
}  // namespace numsan
