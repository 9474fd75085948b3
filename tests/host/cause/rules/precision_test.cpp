// N8: what a 16- or 8-bit type cannot hold.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

Features half(const char* op, Mechanism mechanism, KindSet kind) {
    Features f = features_of(op, mechanism, kind);
    f.dtype = DType::Float16;
    f.narrow = true;
    return f;
}

TEST(Precision, FlushedValues) {
    Features f = half("mul", Mechanism::UDF, 0);
    f.phase = Phase::Backward;
    EXPECT_EQ(winner(f), "N8");
    EXPECT_EQ(said(precision, f), Facts{"float16 cannot hold values this small"});
}

TEST(Precision, LostUpdates) {
    Features f = half("add", Mechanism::PREC, 0);
    f.dtype = DType::BFloat16;
    f.phase = Phase::Optimizer;
    EXPECT_EQ(winner(f), "N8");
    EXPECT_EQ(said(precision, f).size(), 1u);
}

TEST(Precision, FractionCutToZero) {
    Features f = features_of("div", Mechanism::DIV0, kPosInf);
    f.phase = Phase::Data;
    f.touched = f.operand_touched = f.in_module = false;
    EXPECT_EQ(winner(f), "N1");
    f.cut = "the operand comes from a fraction that a cast cut off: it stored 0 in place of 0.27";
    EXPECT_EQ(winner(f), "N8");
    f.mechanism = Mechanism::OVF;
    EXPECT_EQ(winner(f), "N1") << "no zero is at fault";
}

TEST(Precision, CloseToTheLargestAndCutToIt) {
    Features f = half("mm", Mechanism::OVF, 0);
    f.near_overflow = true;
    f.phase = Phase::Forward;
    EXPECT_EQ(winner(f), "N8");
    EXPECT_EQ(said(precision, f), Facts{"float16 has little room above these values"});
    f.mechanism = Mechanism::PREC;
    EXPECT_EQ(winner(f), "N8");
    EXPECT_EQ(said(precision, f), Facts{"float16 ends below the values it was to hold"});
}

TEST(Precision, FiniteInSinglePrecision) {
    Features f = half("mm", Mechanism::OVF, kPosInf);
    f.result_estimate = 1.5e6;
    EXPECT_EQ(winner(f), "N8");
    EXPECT_EQ(said(precision, f), Facts{"the result is at most 1.5e+06: finite in float32, beyond float16"});
    f.result_estimate = 1e40;
    EXPECT_EQ(said(precision, f), Facts{}) << "float32 would not have helped";
    f.result_estimate = 0;
    EXPECT_EQ(said(precision, f), Facts{}) << "not measured";
}

TEST(Precision, ZeroOfRoundingInHalf) {
    Features f = half("div", Mechanism::DIV0, kPosInf);
    EXPECT_EQ(winner(f), "N8");
    EXPECT_EQ(said(precision, f), Facts{"the op ran in float16"});
    f.narrow = false;
    f.dtype = DType::Float32;
    EXPECT_NE(winner(f), "N8") << "the twin in single precision";
    EXPECT_EQ(said(precision, f), Facts{});
}

TEST(Precision, OperandThatWasRoundedBefore) {
    Features f = features_of("log", Mechanism::DOM, kNegInf);
    f.narrow_upstream = true;
    EXPECT_EQ(said(precision, f), Facts{"its operand was rounded to a 16- or 8-bit type before"});
    f.narrow_upstream = false;
    EXPECT_EQ(said(precision, f), Facts{});
}

TEST(Precision, HalfIsNotToBlameForWhatWasBadBefore) {
    for (const Mechanism mechanism : {Mechanism::DATA, Mechanism::STATE, Mechanism::UNINIT, Mechanism::INDET}) {
        EXPECT_EQ(total(precision, half("mul", mechanism, kNaN)), 0) << to_string(mechanism);
    }
}

TEST(Precision, AnIntegerThatWrappedAround) {
    Features f = features_of("sqrt", Mechanism::DOM, kNaN);
    f.wrapped = "the operand comes from an integer that had wrapped around";
    f.wrapped_type = IntegerType::Int32;
    EXPECT_EQ(winner(f), "N8");
    f.phase = Phase::Data;
    f.wrapped_type = IntegerType::Int64;
    EXPECT_EQ(winner(f), "N1") << "no wider integer would have held it: the numbers are at fault";
    EXPECT_GT(total(precision, f), 0);
}

}  // namespace
}  // namespace numsan
