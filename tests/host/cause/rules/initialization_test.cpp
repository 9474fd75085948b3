// N6: parameters that were bad before they were used.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

TEST(Initialization, StateThatWasThereBefore) {
    Features f = features_of("copy", Mechanism::STATE, kNaN);
    f.phase = Phase::Load;
    f.reads_parameter = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f), Facts{"it became a parameter's value before any training did"});
    f.mechanism = Mechanism::DATA;
    f.phase = Phase::Data;
    f.reads_parameter = false;
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(initialization, f), Facts{});
}

TEST(Initialization, BecameAParameterBeforeTraining) {
    Features f = features_of("div", Mechanism::DIV0, kPosInf);
    f.phase = Phase::Load;
    f.reads_parameter = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f), Facts{"it became a parameter's value before any training did"});
}

TEST(Initialization, ParameterThatNothingWrote) {
    Features f = features_of("mm", Mechanism::UNINIT, kNaN);
    f.reads_parameter = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f), Facts{"nothing wrote this parameter before it was read"});
    f.reads_parameter = false;
    EXPECT_EQ(winner(f), "N9") << "a buffer of the program's own";
    EXPECT_EQ(said(initialization, f), Facts{});
}

TEST(Initialization, RunningValueThatNothingBegan) {
    Features f = features_of("mul", Mechanism::UNINIT, kNaN);
    f.first_update = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f), Facts{"it was to be updated in place, and had no first value"});
}

TEST(Initialization, ParameterAtAPoleFromTheStart) {
    Features f = features_of("_linalg_slogdet", Mechanism::DOM, kNegInf);
    f.step = 0;
    f.operand_is_parameter = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f), Facts{"it read a parameter as it was set up, before any step had changed it"});
    f.step = 3;
    EXPECT_NE(winner(f), "N6") << "training took it there";
}

TEST(Initialization, ExponentialOfAParameterAsItWasSetUp) {
    Features f = features_of("exp", Mechanism::OVF, kPosInf);
    f.step = 0;
    f.operand_is_parameter = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f), Facts{"it read a parameter as it was set up, before any step had changed it"});
    f.operand_is_parameter = false;
    EXPECT_EQ(winner(f), "N2");
    f.operand_is_parameter = true;
    f.step = 3;
    EXPECT_EQ(winner(f), "N2") << "training took it there";
}

TEST(Initialization, WeightsThatMakeValuesManyTimesLarger) {
    Features f = features_of("addmm", Mechanism::OVF, kPosInf);
    f.growing_ops = 12;
    f.growth = 1e36;
    f.weight_gain = 1500;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f),
              Facts{"the weight it read makes values about 1.5e+03 times larger, and training had not made it grow"});
    f.weight_gain = 3;
    EXPECT_EQ(winner(f), "N7") << "the depth does it";
    f.weight_gain = 1500;
    f.parameter_growth.times = 1e3;
    EXPECT_NE(winner(f), "N6") << "training did it";
    EXPECT_EQ(said(initialization, f), Facts{});
}

TEST(Initialization, ParameterOfTheWrongScale) {
    Features f = features_of("mm", Mechanism::OVF, kPosInf);
    f.reads_parameter = true;
    f.parameter_max = 2.5e20;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f),
              Facts{"it read a parameter of magnitude 2.5e+20 that training had not made grow"});
    f.parameter_growth.times = 1e9;
    EXPECT_NE(winner(f), "N6") << "training made it grow";
    EXPECT_EQ(said(initialization, f), Facts{});
    f.parameter_growth.times = 1;
    f.parameter_max = 100;
    EXPECT_NE(winner(f), "N6");
    f.parameter_start = 1e19;
    EXPECT_EQ(winner(f), "N6") << "a weight, read through a view, beside its bias";
}

TEST(Initialization, DividedByAParameter) {
    Features f = features_of("_weight_norm_interface", Mechanism::DIV0, kNaN);
    EXPECT_NE(winner(f), "N6");
    f.operand_is_parameter = true;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(initialization, f),
              Facts{"it divided by a parameter: training hardly ever makes one exactly zero, what set it up does"});
}

}  // namespace
}  // namespace numsan
