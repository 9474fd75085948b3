// Which faults are ranked for which signals, and that what is near to a fault is none.
#include "host/diagnosis/ranking.h"

#include <gtest/gtest.h>

#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

void each(Signals& signals, Series ParameterSignals::*series, double value) {
    for (ParameterSignals& one : signals.parameters) (one.*series).assign(signals.steps.size(), value);
}

TEST(Ranking, AHealthyTrainingHasNoFault) {
    EXPECT_EQ(ids(healthy_signals()), Ids{});
    EXPECT_EQ(ids(idle_signals()), Ids{}) << "a loss that stands has many causes";
    EXPECT_EQ(ids(Signals{}), Ids{});
}

TEST(Ranking, GradientsThatAreUsedTwiceAreMissingZeroGrad) {
    Signals signals = healthy_signals();
    each(signals, &ParameterSignals::carried, 1);
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::MissingZeroGrad);
    EXPECT_EQ(faults[0].location->line, 30);
    EXPECT_EQ(faults[0].evidence[0],
              "backward() added to gradients that the optimizer had used already, of up to 2 parameters in 11 sampled "
              "steps up to step 32");
}

TEST(Ranking, GradientsOfAFewParametersMayBeKept) {
    Signals signals = healthy_signals();
    signals.parameters[0].carried.assign(signals.steps.size(), 1);
    EXPECT_EQ(ids(signals), Ids{}) << "another optimizer's";
    each(signals, &ParameterSignals::carried, 1);
    for (ParameterSignals& one : signals.parameters) one.carried[8] = 0;
    EXPECT_EQ(ids(signals), Ids{}) << "they were cleared in one of the last steps";
}

TEST(Ranking, AnOptimizerThatChangesNothingIsIdle) {
    Signals signals = healthy_signals();
    for (ParameterSignals& one : signals.parameters) one.changed = false;
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::IdleOptimizer);
    EXPECT_EQ(faults[0].location->line, 31);
    signals.optimizer_steps = 0;
    EXPECT_EQ(ids(signals), Ids{}) << "gradients may be all that is wanted";
    signals.optimizer_steps = 11;
    signals.parameters[1].changed = true;
    EXPECT_EQ(ids(signals), Ids{}) << "a picture may be trained, and not the model";
}

TEST(Ranking, ALossOfAnActivatedOutputIsADoubleActivation) {
    Signals signals = healthy_signals();
    signals.losses[0].made_by = "aten::_softmax";
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::DoubleActivation);
    EXPECT_EQ(faults[0].location->line, 22) << "where the softmax is";
    signals.losses[0].made_by = "aten::_log_softmax";
    EXPECT_EQ(ids(signals), Ids{}) << "twice is once";
    signals.losses[0].op = "aten::binary_cross_entropy_with_logits";
    signals.losses[0].made_by = "aten::sigmoid";
    EXPECT_EQ(ids(signals), Ids{FaultId::DoubleActivation});
    signals.losses[0].steps = 2;
    EXPECT_EQ(ids(signals), Ids{}) << "in two steps of eleven";
}

TEST(Ranking, RowsThatAreNoLogProbabilitiesMissALogSoftmax) {
    Signals signals = healthy_signals();
    signals.losses[0].op = "aten::nll_loss_forward";
    signals.trend.last = -3;
    EXPECT_EQ(ids(signals), Ids{});
    signals.losses[0].raw_steps = 11;
    signals.losses[0].row_sum = 7.5;
    EXPECT_EQ(ids(signals), Ids{FaultId::MissingLogSoftmax});
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "the loss falls towards zero";
    signals.trend.last = -3;
    signals.losses[0].made_by = "aten::mul";
    EXPECT_EQ(ids(signals), Ids{}) << "a weight on each log-probability, as of a focal loss";
    signals.losses[0].made_by = "aten::addmm";
    signals.losses[0].raw_steps = 10;
    EXPECT_EQ(ids(signals), Ids{}) << "in one step they were";
}

TEST(Ranking, ALayerOfZerosWithoutGradientIsDead) {
    Signals signals = healthy_signals();
    signals.activations[0].zeros.assign(11, 1);
    EXPECT_EQ(ids(signals), Ids{}) << "its gradient is not zero";
    signals.parameters[0].gradient.assign(11, 0);
    EXPECT_EQ(ids(signals), Ids{FaultId::DeadLayer});
    signals.activations[0].zeros.back() = 0.999;
    EXPECT_EQ(ids(signals), Ids{});
    signals.activations[0].zeros.back() = 1;
    signals.activations[0].parameter = -1;
    EXPECT_EQ(ids(signals), Ids{}) << "a hinge of what no layer made";
}

TEST(Ranking, ALayerOfZerosBehindAnotherOpIsDeadWhereNothingIsLearned) {
    Signals signals = idle_signals();
    signals.activations[0].zeros.assign(11, 1);
    signals.activations[0].parameter = -1;
    EXPECT_EQ(ids(signals), Ids{}) << "gradients reach all weights";
    signals.parameters[1].gradient.assign(11, 0);
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::DeadLayer);
    EXPECT_EQ(faults[0].evidence[1], "the gradient of `model.1.weight` was exactly zero in these");
    signals.activations[0].feeds = false;
    EXPECT_EQ(ids(signals), Ids{}) << "a hinge in the loss";
    signals.activations[0].feeds = true;
    signals.parameters[1].op = "aten::embedding";
    EXPECT_EQ(ids(signals), Ids{}) << "few of its rows are in a batch";
    signals.parameters[1].op = "aten::addmm";
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "the training learns";
}

TEST(Ranking, LargeStepsWithoutSuccessAreARateTooLarge) {
    Signals signals = idle_signals();
    each(signals, &ParameterSignals::update, 0.4);
    EXPECT_EQ(ids(signals), Ids{FaultId::RateTooLarge});
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "the loss falls";
    signals.trend.last = NAN;
    EXPECT_EQ(ids(signals), Ids{FaultId::RateTooLarge}) << "it is not finite any more";
    signals.trend.places = 2;
    EXPECT_EQ(ids(signals), Ids{}) << "two losses: neither is the program's";
}

TEST(Ranking, ALossThatComesBackToWhereItBeganHasNotFallen) {
    Signals signals = healthy_signals();
    each(signals, &ParameterSignals::update, 0.5);
    signals.trend.first = 400;
    signals.trend.last = 2.2;
    signals.loss.front() = 250;
    EXPECT_EQ(ids(signals), Ids{}) << "it began there";
    signals.loss.front() = 2.4;
    EXPECT_EQ(ids(signals), Ids{}) << "it is a little lower, after all";
    signals.loss.front() = 2.1;
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::RateTooLarge);
    EXPECT_EQ(faults[0].evidence[1], "the loss was 2.1 in the first step and 2.2 in the last 16 of 64");
}

TEST(Ranking, ALayerThatLargeStepsHaveKilledIsARateTooLarge) {
    Signals signals = idle_signals();
    signals.activations[0].zeros.assign(11, 1);
    signals.parameters[0].gradient.assign(11, 0);
    for (ParameterSignals& one : signals.parameters) one.update[0] = one.update[1] = 0.5;
    EXPECT_EQ(ids(signals), Ids{FaultId::DeadLayer}) << "it was never alive";
    signals.activations[0].zeros[0] = 0.5;
    EXPECT_EQ(ids(signals), Ids{FaultId::RateTooLarge});
    for (ParameterSignals& one : signals.parameters) one.update[1] = 1e-3;
    EXPECT_EQ(ids(signals), Ids{FaultId::DeadLayer}) << "one large step alone";
}

TEST(Ranking, AWeightThatStartsAtZeroHasLargeSteps) {
    Signals signals = idle_signals();
    signals.parameters[0].update.assign(11, 0.4);
    EXPECT_EQ(ids(signals), Ids{}) << "one of two";
    signals.parameters[0].weight[0] = 0;
    EXPECT_EQ(ids(signals), Ids{}) << "an adapter";
    signals.parameters[1].update.assign(11, 0.4);
    EXPECT_EQ(ids(signals), Ids{FaultId::RateTooLarge});
    signals.steps.back() = 31;
    EXPECT_EQ(ids(signals), Ids{}) << "too few steps, however many backward passes";
}

TEST(Ranking, WhatPilesUpIsNotARateTooLarge) {
    Signals signals = idle_signals();
    each(signals, &ParameterSignals::update, 0.4);
    each(signals, &ParameterSignals::carried, 1);
    EXPECT_EQ(ids(signals), Ids{FaultId::MissingZeroGrad});
}

TEST(Ranking, StepsThatAreLostAreARateTooSmall) {
    Signals signals = idle_signals();
    each(signals, &ParameterSignals::update, 1e-9);
    signals.step_size.assign(11, 1e-10);
    EXPECT_EQ(ids(signals), Ids{FaultId::RateTooSmall});
    Signals warming = signals;
    for (size_t i = 0; i < warming.step_size.size(); ++i) warming.step_size[i] = 1e-10 * static_cast<double>(i + 1);
    EXPECT_EQ(ids(warming), Ids{}) << "a schedule warms up";
    signals.parameters[1].update.back() = 1e-4;
    EXPECT_EQ(ids(signals), Ids{}) << "one weight moves";
    signals.parameters[1].update.back() = 1e-9;
    for (ParameterSignals& one : signals.parameters) one.dtype = "float64";
    EXPECT_EQ(ids(signals), Ids{}) << "numbers of that type lie closer";
    for (ParameterSignals& one : signals.parameters) one.dtype = "float32";
    signals.parameters[1].dtype = "bfloat16";
    EXPECT_EQ(ids(signals), Ids{}) << "of a 16-bit weight that is another finding";
}

TEST(Ranking, StepsThatAreLostFromAnEarlyStepOnAreARateTooSmall) {
    Signals signals = idle_signals();
    signals.step_size.assign(11, NAN);
    for (ParameterSignals& one : signals.parameters) std::fill(one.update.begin() + 9, one.update.end(), 1e-9);
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::RateTooSmall);
    EXPECT_NE(faults[0].evidence[0].find("by more than 1.0e-09 of its size from step 16 on, in 11 sampled steps"),
              std::string::npos)
        << faults[0].evidence[0];
    EXPECT_EQ(faults[0].help[0].find("check the schedule"), 0u);
    for (ParameterSignals& one : signals.parameters) one.update[9] = 1e-3;
    EXPECT_EQ(ids(signals), Ids{}) << "they were so in the last sampled step alone";
    for (ParameterSignals& one : signals.parameters) std::fill(one.update.begin() + 9, one.update.end(), 1e-9);
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "it has learned before the schedule ended";
}

TEST(Ranking, GradientsThatFallFromLayerToLayerVanish) {
    Signals signals = idle_signals();
    const ParameterSignals one = signals.parameters[0];
    signals.parameters.clear();
    double gradient = 1e-9;
    for (int i = 0; i < 6; ++i, gradient *= 20) {
        signals.parameters.push_back(one);
        signals.parameters.back().gradient.assign(11, gradient);
    }
    EXPECT_EQ(ids(signals), Ids{FaultId::VanishingGradient});
    std::swap(signals.parameters[1].gradient, signals.parameters[4].gradient);
    EXPECT_EQ(ids(signals), Ids{}) << "they go up and down";
    std::swap(signals.parameters[1].gradient, signals.parameters[4].gradient);
    signals.trend.last = 0.5;
    EXPECT_EQ(ids(signals), Ids{}) << "it learns all the same";
}

TEST(Ranking, AFlatActivationBetweenLayersIsSaturated) {
    Signals signals = idle_signals();
    signals.activations[0].op = "aten::tanh";
    signals.activations[0].zeros.assign(11, NAN);
    signals.activations[0].at_limit.assign(11, 0.99);
    EXPECT_EQ(ids(signals), Ids{FaultId::SaturatedLayer});
    signals.activations[0].feeds = false;
    EXPECT_EQ(ids(signals), Ids{}) << "an output may be sure";
    signals.activations[0].feeds = true;
    signals.activations[0].at_limit.back() = 0.5;
    EXPECT_EQ(ids(signals), Ids{});
}

TEST(Ranking, AFlatActivationBehindAnotherOpIsSaturatedWhereItStopsTheGradient) {
    Signals signals = idle_signals();
    signals.activations[0].op = "aten::sigmoid";
    signals.activations[0].zeros.assign(11, NAN);
    signals.activations[0].at_limit.assign(11, 1);
    signals.activations[0].parameter = -1;
    EXPECT_EQ(ids(signals), Ids{}) << "a gate";
    signals.parameters[0].gradient.assign(11, 0);
    EXPECT_EQ(ids(signals), Ids{FaultId::SaturatedLayer});
}

TEST(Ranking, OfFaultsThatFollowFromEachOtherOneIsLeft) {
    Signals signals = idle_signals();
    each(signals, &ParameterSignals::update, 0.4);
    signals.parameters[0].input.assign(11, 120);
    EXPECT_EQ(ids(signals), Ids{FaultId::UnscaledInputs});
    signals.activations[0].op = "aten::tanh";
    signals.activations[0].zeros.assign(11, NAN);
    signals.activations[0].at_limit.assign(11, 0.99);
    EXPECT_EQ(ids(signals), Ids{FaultId::SaturatedLayer});
}

TEST(Ranking, TheLikeliestIsFirst) {
    Signals signals = idle_signals();
    signals.step_size.assign(11, 1e-10);
    each(signals, &ParameterSignals::update, 1e-9);
    signals.losses[0].made_by = "aten::_softmax";
    EXPECT_EQ(ids(signals), (Ids{FaultId::RateTooSmall, FaultId::DoubleActivation}));
}

}  // namespace
}  // namespace numsan
