// N1: values of the batch.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

Features batch(const char* op, Mechanism mechanism, KindSet kind) {
    Features f = features_of(op, mechanism, kind);
    f.touched = f.operand_touched = f.in_module = f.loss_known = false;
    return f;
}

TEST(InvalidData, ValueThatArrivedWithTheBatch) {
    Features f = batch("external", Mechanism::DATA, kNaN);
    f.phase = Phase::Data;
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f).front(), "the value arrived with the batch: no op was seen to make it");
    f.mechanism = Mechanism::STATE;
    f.phase = Phase::Load;
    EXPECT_NE(winner(f), "N1") << "a checkpoint is no batch";
    EXPECT_EQ(said(invalid_data, f), Facts{});
}

TEST(InvalidData, TargetThatDoesNotFitItsInput) {
    Features f = features_of_loss("aten::_ctc_loss", Mechanism::DATA, kPosInf);
    EXPECT_EQ(said(invalid_data, f), Facts{"a target does not fit its input"}) << "no value arrived with the batch";
    EXPECT_EQ(winner(f), "N4") << "the loss has a setting for it";
    EXPECT_EQ(to_string(rank_causes(f).guesses.at(1).id), std::string("N1"));
    f.mechanism = Mechanism::OPAQUE;
    f.kind = kNaN;
    EXPECT_EQ(said(invalid_data, f), Facts{}) << "a NaN has another reason";
}

TEST(InvalidData, PreparationOfTheBatch) {
    Features f = batch("div", Mechanism::DIV0, kNaN);
    f.phase = Phase::Data;
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f),
              Facts{"it was made outside every module from values that no parameter had touched"});
    f.phase = Phase::Optimizer;
    EXPECT_NE(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f), Facts{});
}

TEST(InvalidData, OpOnUntouchedValues) {
    Features f = batch("log", Mechanism::DOM, kNaN);
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f), (Facts{"what the op read was not computed from any parameter",
                                            "the logarithm is of a negative number that no parameter had touched"}));
    f.touched = f.operand_touched = f.in_module = true;
    EXPECT_NE(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f), Facts{});
}

TEST(InvalidData, DenominatorOfTheBatchsOwn) {
    Features f = features_of("div", Mechanism::DIV0, kPosInf);
    f.loss_known = false;
    f.operand_touched = false;
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f),
              Facts{"the operand at fault was not computed from any parameter: it is the batch's"});
    f.operand_touched = true;
    EXPECT_NE(winner(f), "N1") << "the model's own denominator";
    EXPECT_EQ(said(invalid_data, f), Facts{});
    f.operand_touched = false;
    f.reduction = "sum";
    EXPECT_EQ(said(invalid_data, f), Facts{}) << "a count or a sum of weights is the program's own";
}

TEST(InvalidData, LogarithmOfANegativeTarget) {
    Features f = features_of_loss("log", Mechanism::DOM, kNaN);
    f.met = FirstMet::Prediction;
    f.touched = f.operand_touched = false;
    EXPECT_EQ(winner(f), "N1");
    f.kind = kNegInf;
    EXPECT_EQ(winner(f), "N4") << "a target of zero is legal: the loss must take it";
    f.kind = kNaN;
    f.touched = f.operand_touched = true;
    EXPECT_EQ(winner(f), "N4") << "a prediction may be negative";
}

TEST(InvalidData, TargetOutOfRange) {
    Features f = features_of_loss("binary_cross_entropy_with_logits", Mechanism::HYPER, kPosInf);
    f.loss_growth = 5000;
    f.parameter_growth.times = 1e6;
    EXPECT_EQ(winner(f), "N5");
    f.wrong_target = 255;
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(invalid_data, f),
              Facts{"the loss has no lower bound for targets outside 0 to 1, and the magnitude of one is 255"});
}

}  // namespace
}  // namespace numsan
