// Table of op and operand -> mechanism.
#include "host/cause/mechanism.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TensorFact fact(std::initializer_list<float> values) {
    const MadeUp made(values);
    TensorFact operand;
    operand.health = CpuScanner().health(made.view());
    return operand;
}

struct Case {
    const char* op;
    KindSet kind;
    bool backward;
    std::vector<TensorFact> inputs;
    Mechanism mechanism;
    DType dtype = DType::Float32;
    double loss_growth = 0;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.op << " -> " << to_string(c.mechanism); }

class MechanismOf : public testing::TestWithParam<Case> {};

TEST_P(MechanismOf, OfTheTable) {
    const Case& c = GetParam();
    const MechanismVerdict verdict = mechanism_of({c.op, c.kind, c.backward, c.dtype, &c.inputs, 0, c.loss_growth, {}});
    EXPECT_STREQ(to_string(verdict.mechanism), to_string(c.mechanism));
    EXPECT_FALSE(verdict.evidence.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, MechanismOf,
    testing::Values(Case{"aten::log", kNaN, false, {fact({-1, 2})}, Mechanism::DOM},
                    Case{"aten::log_", kNegInf, false, {fact({0, 2})}, Mechanism::DOM},
                    Case{"aten::sqrt", kNaN, false, {fact({-1})}, Mechanism::DOM},
                    Case{"aten::_linalg_slogdet", kNegInf, false, {fact({0, 1})}, Mechanism::DOM},
                    Case{"aten::_linalg_slogdet", kNaN, false, {fact({3e38f, 1})}, Mechanism::OVF},
                    Case{"aten::rsqrt", kNaN, false, {fact({-1})}, Mechanism::DOM},
                    Case{"aten::rsqrt", kPosInf, false, {fact({0})}, Mechanism::DIV0},
                    Case{"aten::pow.Tensor_Scalar", kNaN, false, {fact({-8})}, Mechanism::DOM},
                    Case{"aten::pow.Tensor_Scalar", kPosInf, false, {fact({0, 1})}, Mechanism::DIV0},
                    Case{"aten::pow", kPosInf, true, {fact({0, 1})}, Mechanism::SING},
                    Case{"aten::div.Tensor", kPosInf, false, {fact({1}), fact({0})}, Mechanism::DIV0},
                    Case{"aten::div.Tensor", kNaN, false, {fact({0}), fact({0})}, Mechanism::DIV0},
                    Case{"aten::div.Tensor", kPosInf, true, {fact({1}), fact({0})}, Mechanism::SING},
                    Case{"aten::div.Scalar", kNaN, false, {fact({0})}, Mechanism::DIV0},
                    Case{"aten::reciprocal", kPosInf, false, {fact({0})}, Mechanism::DIV0},
                    Case{"aten::addcdiv_", kPosInf, false, {fact({1}), fact({1}), fact({0})}, Mechanism::DIV0},
                    Case{"aten::div.Tensor", kPosInf, false, {fact({1e38f}), fact({1e-30f})}, Mechanism::OVF},
                    Case{"aten::mean", kNaN, false, {fact({})}, Mechanism::DIV0},
                    Case{"aten::std.correction", kNaN, false, {fact({1})}, Mechanism::DIV0},
                    Case{"aten::nll_loss_forward", kNaN, false, {fact({1})}, Mechanism::DIV0},
                    Case{"aten::mul.Tensor", kPosInf, false, {fact({1e38f}), fact({1e10f})}, Mechanism::OVF},
                    Case{"aten::exp", kPosInf, false, {fact({100})}, Mechanism::OVF},
                    Case{
                        "aten::mul.Tensor", kPosInf, false, {fact({300}), fact({300})}, Mechanism::OVF, DType::Float16},
                    Case{"aten::mm", kNaN, false, {fact({1e38f}), fact({1e38f})}, Mechanism::OVF},
                    Case{"aten::mm", kNaN, false, {fact({1}), fact({1})}, Mechanism::OPAQUE},
                    Case{"cublasGemmEx()", kPosInf, false, {fact({100}), fact({100})}, Mechanism::OVF, DType::Float16},
                    Case{"cublasSgemm()", kNaN, false, {fact({1e38f}), fact({1e38f})}, Mechanism::OVF},
                    Case{"cublasSgemm()", kNaN, false, {fact({1}), fact({1})}, Mechanism::OPAQUE},
                    Case{"cufftExecC2C()", kPosInf, false, {}, Mechanism::OVF},  // it wrote over its operand
                    Case{"cufftExecC2C()", kNaN, false, {}, Mechanism::OPAQUE},
                    Case{"aten::mul.Tensor", kPosInf, true, {fact({1}), fact({2})}, Mechanism::SING},
                    Case{"aten::linalg_vector_norm_backward", kNaN, true, {fact({1})}, Mechanism::SING},
                    Case{"aten::mm", kPosInf, false, {fact({1e38f})}, Mechanism::HYPER, DType::Float32, 5000}));

TEST(MechanismEvidence, SaysWhatWasMeasured) {
    const std::vector<TensorFact> one_zero{fact({1}), fact({0, 1})};
    EXPECT_EQ(mechanism_of({"aten::div", kPosInf, false, DType::Float32, &one_zero}).evidence,
              std::vector<std::string>{"the divisor has 1 zero"});
    const std::vector<TensorFact> zeros{fact({1}), fact({0, 0})};
    EXPECT_EQ(mechanism_of({"aten::div", kPosInf, false, DType::Float32, &zeros}).evidence,
              std::vector<std::string>{"the divisor has 2 zeros"});
    const std::vector<TensorFact> negative{fact({-1.5f, 0, 2})};
    EXPECT_EQ(mechanism_of({"aten::log", kNaN, false, DType::Float32, &negative}).evidence,
              std::vector<std::string>{"the operand of log ranges from -1.5 to 2, 1 zero among them"});
}

TEST(MechanismEvidence, BatchNormOfOneValueAChannel) {
    std::vector<TensorFact> batch{fact({1, 2, 3})};
    batch[0].shape = {1, 3};
    const MechanismVerdict one = mechanism_of({"aten::native_batch_norm", kNaN, false, DType::Float32, &batch});
    EXPECT_EQ(one.mechanism, Mechanism::DIV0);
    EXPECT_EQ(one.evidence, std::vector<std::string>{
                                "native_batch_norm of one value a channel: its running variance divides by n - 1"});
    batch[0].shape = {3, 1};
    EXPECT_EQ(mechanism_of({"aten::native_batch_norm", kNaN, false, DType::Float32, &batch}).mechanism,
              Mechanism::OPAQUE);
}

TEST(MechanismEvidence, WhatHasGrownIsWhatIsSaid) {
    const std::vector<TensorFact> large{fact({1e38f})};
    const std::string operand = "every operand was finite, the largest 1e+38";
    MechanismFacts facts{"aten::mm", kPosInf, false, DType::Float32, &large, 0, 5000, {}};
    EXPECT_EQ(mechanism_of(facts).evidence,
              (std::vector<std::string>{operand, "the loss had become 5e+03 times as large in the steps before"}));
    facts.loss_growth = 0;
    facts.parameter_growth.times = 2000;
    EXPECT_EQ(mechanism_of(facts).evidence,
              (std::vector<std::string>{operand, "a parameter is 2e+03 times as large as when training began"}));
    facts.parameter_growth.times = 900;
    EXPECT_EQ(mechanism_of(facts).mechanism, Mechanism::OVF);
}

}  // namespace
}  // namespace numsan
