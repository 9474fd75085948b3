// N4: losses that are written in an unstable way.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

constexpr char kPartOfTheLoss[] = "no parameter was read between this op and the loss: it is part of the loss";

TEST(LossComputation, OpThatIsALoss) {
    Features f = features_of_loss("nll_loss_forward", Mechanism::DIV0, kNaN);
    EXPECT_EQ(winner(f), "N4");
    EXPECT_EQ(said(loss_computation, f), (Facts{"nll_loss_forward is a loss", kPartOfTheLoss}));
    f.phase = Phase::Backward;
    EXPECT_NE(winner(f), "N4");
    EXPECT_EQ(said(loss_computation, f), Facts{});
}

TEST(LossComputation, LogarithmOfARoundedProbability) {
    Features f = features_of_loss("log", Mechanism::DOM, kNegInf);
    f.rounded.op = "_softmax";
    EXPECT_EQ(winner(f), "N4");
    EXPECT_EQ(said(loss_computation, f),
              (Facts{kPartOfTheLoss, "the logarithm is of a value that _softmax had rounded to its limit"}));
    f.after_parameters = false;
    EXPECT_EQ(winner(f), "N4") << "the unstable form of a loss, wherever it stands";
    f.rounded.op = "clamp";
    EXPECT_NE(winner(f), "N4") << "parameters were read after it: it is the model's";
    EXPECT_EQ(said(loss_computation, f), Facts{});
}

TEST(LossComputation, WhatAModuleWithParametersComputesLastIsTheModels) {
    Features f = features_of_loss("div", Mechanism::DIV0, kNaN);
    f.reduction = "std";
    EXPECT_EQ(winner(f), "N4");
    f.in_layer = true;
    EXPECT_EQ(winner(f), "N7");
    EXPECT_EQ(said(loss_computation, f), Facts{});
}

TEST(LossComputation, DenominatorOfEachSampleIsTheBatchs) {
    Features f = features_of_loss("div", Mechanism::DIV0, kPosInf);
    f.operand_touched = false;
    f.operand_elements = 1;
    EXPECT_EQ(winner(f), "N4") << "a count";
    f.operand_elements = 8;
    EXPECT_EQ(winner(f), "N1");
}

TEST(LossComputation, OfALossThatTorchComputed) {
    Features f = features_of("exp", Mechanism::OVF, kPosInf);
    f.loss_known = f.in_module = false;
    EXPECT_NE(winner(f), "N4");
    f.of_loss = true;
    EXPECT_EQ(winner(f), "N4") << "perplexity, printed";
    EXPECT_EQ(said(loss_computation, f), Facts{"what it read was computed from a loss"});
}

TEST(LossComputation, EmptyDenominator) {
    Features f = features_of_loss("div", Mechanism::DIV0, kNaN);
    f.reduction = "sum";
    EXPECT_EQ(winner(f), "N4");
    EXPECT_EQ(said(loss_computation, f),
              (Facts{kPartOfTheLoss, "the denominator is a count or a sum that can be zero"}));
    f.reduction.clear();
    EXPECT_EQ(said(loss_computation, f), Facts{kPartOfTheLoss}) << "a value of the model's, not a count";
    f.hidden = true;
    EXPECT_EQ(winner(f), "N4")
        << "what the loss computes and masks is the loss's, though the derivative brought it to light";
    EXPECT_EQ(said(loss_computation, f), Facts{"the forward value is part of the loss"});
    f.mechanism = Mechanism::OVF;
    f.narrow = true;
    EXPECT_EQ(said(loss_computation, f), Facts{}) << "the type's, whatever hid it";
    f.mechanism = Mechanism::DIV0;
    f.narrow = false;
    f.after_parameters = false;
    EXPECT_EQ(winner(f), "N3");
    EXPECT_EQ(said(loss_computation, f), Facts{});
}

TEST(LossComputation, ExponentialInTheLoss) {
    Features f = features_of_loss("exp", Mechanism::OVF, kPosInf);
    EXPECT_EQ(winner(f), "N4");
    EXPECT_EQ(said(loss_computation, f), (Facts{kPartOfTheLoss, "an exponential in the loss overflowed"}));
    f.parameter_growth.times = 5000;
    EXPECT_NE(winner(f), "N4") << "the loss ran away with the weights";
}

TEST(LossComputation, WhatFirstMeetsAPrediction) {
    Features f = features_of("div", Mechanism::DIV0, kNaN);
    f.in_module = f.touched = f.operand_touched = false;
    f.met = FirstMet::Prediction;
    EXPECT_EQ(winner(f), "N4");
    EXPECT_EQ(said(loss_computation, f),
              (Facts{"what it made met a prediction before any parameter: it is part of the loss",
                     "the denominator is a count or a sum that can be zero"}));
}

TEST(LossComputation, PowerOfANegativeNumber) {
    Features f = features_of_loss("pow", Mechanism::DOM, kNaN);
    EXPECT_EQ(winner(f), "N4");
    f = features_of("pow", Mechanism::DOM, kNaN);
    EXPECT_EQ(winner(f), "N2") << "in the model";
    f = features_of_loss("sqrt", Mechanism::DOM, kNaN);
    f.touched = f.operand_touched = false;
    f.met = FirstMet::Prediction;
    EXPECT_NE(winner(f), "N4") << "what a target is made of";
}

}  // namespace
}  // namespace numsan
