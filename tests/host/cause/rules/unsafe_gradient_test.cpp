// N3: derivatives that are not finite where the function is.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

TEST(UnsafeGradient, DerivativeThatDividesByZero) {
    Features f = features_of_backward("sqrt", Mechanism::SING, kPosInf);
    EXPECT_EQ(winner(f), "N3");
    EXPECT_EQ(said(unsafe_gradient, f),
              Facts{"every operand of the forward op was finite; its derivative divides by zero"});
    f.phase = Phase::Forward;
    EXPECT_NE(winner(f), "N3");
    EXPECT_EQ(said(unsafe_gradient, f), Facts{});
}

TEST(UnsafeGradient, MaskedForwardValueThatComesBack) {
    Features f = features_of("log", Mechanism::DOM, kNaN);
    f.hidden = true;
    EXPECT_EQ(winner(f), "N3");
    EXPECT_EQ(said(unsafe_gradient, f),
              Facts{"the forward value was masked away; its derivative is multiplied with it and is not finite"});
    f.hidden = false;
    EXPECT_NE(winner(f), "N3");
}

TEST(UnsafeGradient, MaskedOverflowOfANarrowTypeIsTheTypes) {
    Features f = features_of("add", Mechanism::OVF, kNegInf);
    f.hidden = f.narrow = true;
    f.dtype = DType::BFloat16;
    EXPECT_EQ(winner(f), "N8");
    f.narrow = false;
    EXPECT_EQ(winner(f), "N3");
}

TEST(UnsafeGradient, BackwardFunctionOfTheProgramsOwn) {
    Features f = features_of_backward("", Mechanism::DOM, kNaN);
    f.own_backward = true;
    EXPECT_EQ(winner(f), "N3");
    EXPECT_EQ(said(unsafe_gradient, f),
              (Facts{"the program's own backward function made it", "the derivative's formula left its domain"}));
    f.own_backward = false;
    EXPECT_EQ(said(unsafe_gradient, f), Facts{"the derivative's formula left its domain"});
}

TEST(UnsafeGradient, ValueThatGrewInTheBackwardPassOnly) {
    for (const Mechanism mechanism : {Mechanism::OPAQUE, Mechanism::OVF}) {
        Features f = features_of_backward("mul", mechanism, kPosInf);
        EXPECT_EQ(winner(f), "N3") << to_string(mechanism);
        EXPECT_EQ(said(unsafe_gradient, f), Facts{"the value was finite until the backward pass"})
            << to_string(mechanism);
        f.parameter_growth.times = 1e6;
        EXPECT_EQ(winner(f), "N5") << to_string(mechanism) << ": the weights had run away";
    }
}

TEST(UnsafeGradient, IndeterminateDerivative) {
    Features f = features_of_backward("logsumexp", Mechanism::INDET, kNaN);
    EXPECT_EQ(said(unsafe_gradient, f), Facts{"the derivative is an indeterminate form"});
    EXPECT_EQ(winner(f), "N3");
}

TEST(UnsafeGradient, SpeaksLessInHalf) {
    Features f = features_of_backward("sqrt", Mechanism::SING, kPosInf);
    const double single = total(unsafe_gradient, f);
    f.narrow = true;
    EXPECT_LT(total(unsafe_gradient, f), single);
}

TEST(UnsafeGradient, NoDivisionIsClaimedOfKernelsWhoseOpsAreNotSeen) {
    Features f = features_of(kCompiledRegion, Mechanism::SING, kNaN);
    f.phase = Phase::Backward;
    EXPECT_EQ(winner(f), "N3");
    EXPECT_EQ(said(unsafe_gradient, f), Facts{"the value was finite until the backward pass"});
}

}  // namespace
}  // namespace numsan
