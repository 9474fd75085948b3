// N2: operands outside of what an operation can take.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

TEST(UnsafeOperation, OperandOutsideTheDomain) {
    Features f = features_of("acos", Mechanism::DOM, kNaN);
    EXPECT_EQ(winner(f), "N2");
    EXPECT_EQ(said(unsafe_operation, f), Facts{"acos was given a finite operand outside its domain"});
    f.phase = Phase::Backward;
    EXPECT_NE(winner(f), "N2") << "the forward value was fine";
    EXPECT_EQ(said(unsafe_operation, f), Facts{});
}

TEST(UnsafeOperation, ZeroToDivideBy) {
    Features f = features_of("div", Mechanism::DIV0, kPosInf);
    EXPECT_EQ(winner(f), "N2");
    EXPECT_EQ(said(unsafe_operation, f), Facts{"div had a zero to divide by"});
    f.dtype = DType::Float16;
    f.narrow = true;
    EXPECT_NE(winner(f), "N2") << "in half the zero is one of rounding";
}

TEST(UnsafeOperation, ExponentialBeyondTheLargestValue) {
    Features f = features_of("exp", Mechanism::OVF, kPosInf);
    f.operand_max = 120.25;
    EXPECT_EQ(winner(f), "N2");
    EXPECT_EQ(said(unsafe_operation, f), Facts{"exp of 120 is beyond the type's largest value"});
    f.op = "mul";
    EXPECT_NE(winner(f), "N2") << "products grow, they leave no domain";
    EXPECT_EQ(said(unsafe_operation, f), Facts{});
}

TEST(UnsafeOperation, DivisionByAReductionOfTheBatch) {
    Features f = features_of("div", Mechanism::DIV0, kNaN);
    f.phase = Phase::Data;
    f.touched = f.operand_touched = f.in_module = false;
    EXPECT_EQ(said(unsafe_operation, f), Facts{});
    f.reduction = "std";
    EXPECT_EQ(said(unsafe_operation, f), Facts{"it divides by a std, which is zero for some legal values"});
}

TEST(UnsafeOperation, SpeaksLessForWhatIsNotOfTheModel) {
    Features f = features_of("log", Mechanism::DOM, kNaN);
    const double model = total(unsafe_operation, f);
    f.touched = f.in_module = false;
    EXPECT_LT(total(unsafe_operation, f), model);
    f = features_of("log", Mechanism::DOM, kNaN);
    f.hidden = true;
    EXPECT_LT(total(unsafe_operation, f), model);
}

}  // namespace
}  // namespace numsan
