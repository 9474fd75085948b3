// N5: numbers of the configuration.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

Features update(const char* op, Mechanism mechanism) {
    Features f = features_of(op, mechanism, kPosInf);
    f.phase = Phase::Optimizer;
    f.in_module = false;
    f.loss_known = true;
    return f;
}

TEST(Hyperparameter, ArithmeticOfTheOptimizer) {
    Features f = update("add", Mechanism::OVF);
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{"it was made inside the optimizer's arithmetic, out of finite gradients"});
    f.phase = Phase::Load;
    EXPECT_NE(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{});
}

TEST(Hyperparameter, NumberThatIsNotFinite) {
    Features f = update("add", Mechanism::DATA);
    f.bad_number = true;
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{"a rate, a factor or a bound that the optimizer was given is not finite"});
    f.phase = Phase::Forward;
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{"a number of the program's own is not finite: no tensor was bad before"});
    f.bad_number = false;
    EXPECT_EQ(winner(f), "N1");
    EXPECT_EQ(said(hyperparameter, f), Facts{});
}

TEST(Hyperparameter, UpdateWithoutEpsilon) {
    Features f = update("addcdiv", Mechanism::DIV0);
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), (Facts{"it was made inside the optimizer's arithmetic, out of finite gradients",
                                              "the update divided by zero: nothing keeps the denominator positive"}));
    f.narrow = true;
    f.dtype = DType::Float16;
    EXPECT_NE(winner(f), "N5") << "epsilon was there, half rounds it to zero";
}

TEST(Hyperparameter, SettingThatWentIntoTheUpdateAlone) {
    Features f = features_of("div", Mechanism::DIV0, kNaN);
    f.phase = Phase::Data;
    f.touched = f.operand_touched = f.in_module = false;
    EXPECT_EQ(winner(f), "N1") << "a batch";
    f.into = EscapeInto::Parameter;
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{"it went into the update of a parameter and came from no loss"});
}

TEST(Hyperparameter, FirstRunOnNumbersOfTheProgramAlone) {
    Features f = features_of("div", Mechanism::DIV0, kPosInf);
    f.phase = Phase::Data;
    f.touched = f.operand_touched = f.in_module = false;
    f.step = 0;
    f.operand_constant = true;
    EXPECT_EQ(winner(f), "N1") << "it was finite in earlier steps: such data came with this batch";
    f.first_run = true;
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(
        said(hyperparameter, f),
        Facts{"the operand at fault was made of numbers of the program alone: no batch and no parameter went into it"});
}

TEST(Hyperparameter, ZeroThatIsANumberIsNoData) {
    Features f = features_of("div", Mechanism::DIV0, kNaN);
    f.phase = Phase::Data;
    f.touched = f.operand_touched = f.in_module = false;
    f.step = 0;
    EXPECT_EQ(winner(f), "N1");
    f.by_number = true;
    EXPECT_EQ(winner(f), "N5");
}

TEST(Hyperparameter, ParametersThatRanAway) {
    Features f = features_of("mm", Mechanism::HYPER, kPosInf);
    f.parameter_growth.times = 12345;
    f.loss_growth = 5000;
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{"a parameter is 1.23e+04 times as large as when training began"});
    f.parameter_growth.times = 30;
    EXPECT_EQ(said(hyperparameter, f), Facts{"a parameter is 30 times as large as when training began"});
    f.loss_growth = 0;
    EXPECT_EQ(said(hyperparameter, f), Facts{}) << "the mechanism's evidence is the parameter's growth";
    f.mechanism = Mechanism::OVF;
    f.parameter_growth = {.times = 300, .now = 1.5, .largest_start = 0.5, .from_near_zero = true};
    f.loss_growth = 5000;
    EXPECT_EQ(said(hyperparameter, f), (Facts{"a parameter that began at or near zero has grown to 1.5; none was "
                                              "larger than 0.5 when training began",
                                              "the loss had become 5e+03 times as large in the steps before"}));
}

TEST(Hyperparameter, StepsAsLargeAsTheWeights) {
    Features f = features_of("exp", Mechanism::OVF, kPosInf);
    f.step = 3;
    f.parameter_growth = {.times = 40, .now = 2, .largest_start = 0.5, .from_near_zero = true};
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f),
              (Facts{"a parameter that began at or near zero has grown to 2; none was larger than 0.5 when training "
                     "began",
                     "a step has moved a parameter, on average, by more than half of what the largest weight was at "
                     "the start"}));
    f.step = 300;
    EXPECT_NE(winner(f), "N5") << "as much in many steps is training";
    EXPECT_EQ(said(hyperparameter, f).size(), 1u);
    f.step = 0;
    EXPECT_LT(total(hyperparameter, f), 0) << "nothing was updated yet";
}

TEST(Hyperparameter, MemoryThatNothingWroteHoldsNoNumberOfTheProgram) {
    Features f = features_of("empty", Mechanism::UNINIT, kNaN);
    f.operand_constant = f.first_run = true;
    f.operand_touched = f.touched = false;
    EXPECT_EQ(winner(f), "N9");
    EXPECT_EQ(said(hyperparameter, f), Facts{});
}

TEST(Hyperparameter, SteadyParametersAreNoneOfItsBusiness) {
    Features f = features_of("mm", Mechanism::OVF, kPosInf);
    EXPECT_NE(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{});
    f.parameter_growth.times = 29;
    EXPECT_EQ(said(hyperparameter, f), Facts{});
    f.step = 0;
    EXPECT_LT(total(hyperparameter, f), 0) << "nothing was updated yet";
}

TEST(Hyperparameter, WhatFirstMeetsAnUpdate) {
    Features f = features_of("reciprocal", Mechanism::DIV0, kPosInf);
    f.in_module = f.touched = f.operand_touched = false;
    f.phase = Phase::Optimizer;
    f.met = FirstMet::Update;
    EXPECT_EQ(winner(f), "N5");
    EXPECT_EQ(said(hyperparameter, f), Facts{"it went into the update of a parameter and came from no loss"});
}

}  // namespace
}  // namespace numsan
