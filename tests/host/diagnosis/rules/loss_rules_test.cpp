// What a loss is held against, its sign and its dimension, and what is near to a fault of these.
#include <gtest/gtest.h>

#include "host/diagnosis/ranking.h"
#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

/// A cross entropy of a layer's scores, all of whose labels are 3.
Signals held_against_one_class() {
    Signals signals = healthy_signals();
    LossSignals nll = signals.losses[0];
    nll.op = "aten::nll_loss_forward";
    nll.made_by = "aten::_log_softmax";
    nll.labels = 700;
    nll.same_labels = true;
    nll.label = 3;
    signals.losses.push_back(nll);
    return signals;
}

TEST(LossRules, LabelsThatAreAllTheSameAreConstant) {
    Signals signals = held_against_one_class();
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::ConstantLabels);
    EXPECT_EQ(faults[0].location->line, 29);
    EXPECT_EQ(faults[0].evidence[0],
              "each of 700 labels that `aten::nll_loss_forward` was given in 11 sampled steps was 3");
    signals.losses[1].labels = 255;
    EXPECT_EQ(ids(signals), Ids{}) << "too few to tell";
    signals.losses[1].labels = 700;
    signals.losses[0].classes = 2;
    EXPECT_EQ(ids(signals), Ids{}) << "one of two classes may be rare";
    signals.losses[1].labels = 2048;
    EXPECT_EQ(ids(signals), Ids{FaultId::ConstantLabels});
    signals.losses[1].labels = 700;
    signals.losses[0].classes = 10;
    signals.losses[0].made_by = "aten::div";
    EXPECT_EQ(ids(signals), Ids{}) << "a contrastive loss, whose right answer is class 0";
    signals.losses[0].made_by = "aten::addmm";
    signals.trend.places = 2;
    EXPECT_EQ(ids(signals), Ids{}) << "adversaries";
    signals.trend.places = 1;
    signals.losses[1].same_labels = false;
    EXPECT_EQ(ids(signals), Ids{});
}

TEST(LossRules, TheNegativeOfALossIsAscended) {
    Signals signals = healthy_signals();
    signals.trend.first = -2;
    signals.trend.last = -40;
    signals.trend.negated = 64;
    signals.trend.negated_op = "aten::mse_loss";
    EXPECT_EQ(ids(signals), Ids{}) << "of a model that was loaded";
    signals.parameters[1].initial = "random";
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::AscendingLoss);
    EXPECT_EQ(faults[0].location->line, 30);
    signals.trend.negated = 32;
    EXPECT_EQ(ids(signals), Ids{}) << "every other one: a game of two";
    signals.trend.negated = 64;
    std::swap(signals.trend.first, signals.trend.last);
    EXPECT_EQ(ids(signals), Ids{}) << "maximize=True";
    std::swap(signals.trend.first, signals.trend.last);
    signals.trend.places = 2;
    EXPECT_EQ(ids(signals), Ids{}) << "an adversary";
    signals.trend.places = 1;
    for (ParameterSignals& one : signals.parameters) one.changed = false;
    signals.optimizer_steps = 0;
    EXPECT_EQ(ids(signals), Ids{}) << "an input is changed, and not the model";
}

TEST(LossRules, ALogSoftmaxWhoseRowsDoNotSumUpWentOverAnotherDimension) {
    Signals signals = healthy_signals();
    signals.losses[0].op = "aten::nll_loss_forward";
    signals.losses[0].made_by = "aten::_log_softmax";
    EXPECT_EQ(ids(signals), Ids{});
    signals.losses[0].raw_steps = 11;
    signals.losses[0].row_sum = 0.3;
    const std::vector<Fault> faults = ruled_faults(signals);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::WrongDimension);
    EXPECT_EQ(faults[0].location->line, 22) << "where the log_softmax is";
}

}  // namespace
}  // namespace numsan
