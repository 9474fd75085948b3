// N7: growth through depth, softmax rows with nothing left, normalisation by zero.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

TEST(ModelStructure, RowWithNothingLeft) {
    Features f = features_of("_softmax", Mechanism::INDET, kNaN);
    EXPECT_EQ(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), Facts{"every value this op normalises had been masked with infinity"});
    f.phase = Phase::Optimizer;
    EXPECT_NE(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), Facts{});
}

TEST(ModelStructure, RowThatADerivativeComputesAgain) {
    Features f = features_of_backward("logsumexp", Mechanism::INDET, kNaN);
    for (const char* op : {"sub", "div"}) {
        f.op = op;
        EXPECT_EQ(winner(f), "N3") << op << ": the forward result was an infinity that is meant";
        EXPECT_EQ(said(model_structure, f), Facts{});
    }
    f.op = "_softmax";
    EXPECT_EQ(winner(f), "N7");
}

TEST(ModelStructure, MeanOfNothing) {
    Features f = features_of("mean", Mechanism::DIV0, kNaN);
    f.in_layer = true;
    f.none_read = true;
    EXPECT_EQ(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), Facts{"mean of too few values is undefined"});
    f.hidden = true;
    EXPECT_EQ(winner(f), "N7") << "whoever hid it";
    f.none_read = false;
    EXPECT_EQ(winner(f), "N3");
}

TEST(ModelStructure, GrowthThroughDepth) {
    Features f = features_of("mm", Mechanism::OVF, kPosInf);
    f.growing_ops = 3;
    f.growth = 4.56e7;
    EXPECT_EQ(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), (Facts{"the parameters are as large as at the start",
                                               "values grew 4.56e+07 times through the ops before it in this step"}));
    f.weight_gain = 2;
    EXPECT_EQ(winner(f), "N7") << "a little at each of many layers";
    f.weight_gain = 200;
    EXPECT_EQ(said(model_structure, f), Facts{}) << "the weights do it";
    f.weight_gain = 0;
    f.growing_ops = 1;
    f.growth = 50;
    EXPECT_EQ(said(model_structure, f), Facts{"the parameters are as large as at the start"});
    f.loss_growth = 5000;
    f.parameter_growth.times = 1e4;
    EXPECT_NE(winner(f), "N7") << "the parameters grew";
    EXPECT_EQ(said(model_structure, f), Facts{});
}

TEST(ModelStructure, DeviationOfTooFew) {
    Features f = features_of("std", Mechanism::DIV0, kNaN);
    f.loss_known = false;
    EXPECT_EQ(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), Facts{"std of too few values is undefined"});
    f.phase = Phase::Backward;
    EXPECT_NE(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), Facts{});
}

TEST(ModelStructure, NormalisationByZero) {
    Features f = features_of("div", Mechanism::DIV0, kNaN);
    f.loss_known = false;
    f.reduction = "std";
    EXPECT_EQ(winner(f), "N7");
    EXPECT_EQ(said(model_structure, f), Facts{"it normalises by a std that is zero here"});
    f.reduction = "linalg_vector_norm";
    EXPECT_NE(winner(f), "N7") << "a vector of length 0 has no direction, whatever the structure";
    f.reduction = "bincount";
    EXPECT_NE(winner(f), "N7") << "a count is no normalisation";
    EXPECT_EQ(said(model_structure, f), Facts{});
}

TEST(ModelStructure, ExponentialInALayer) {
    Features f = features_of("exp", Mechanism::OVF, kPosInf);
    EXPECT_EQ(said(model_structure, f), Facts{});
    f.in_layer = true;
    EXPECT_EQ(said(model_structure, f), Facts{"nothing bounds what the layer takes the exponential of"});
}

TEST(ModelStructure, SpeaksLessInHalf) {
    Features f = features_of("mm", Mechanism::OVF, kPosInf);
    const double single = total(model_structure, f);
    f.narrow = true;
    EXPECT_LT(total(model_structure, f), single);
}

}  // namespace
}  // namespace numsan
