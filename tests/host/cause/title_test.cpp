// What the title of a finding says that its op did.
#include "host/cause/title.h"

#include <gtest/gtest.h>

#include "host/cause/birth.h"

namespace numsan {
namespace {

Birth birth_of(const char* op, KindSet kind) {
    Birth birth;
    birth.op = op;
    birth.kind = kind;
    TensorFact fact;
    fact.health.elements = 4;
    fact.health.pos_inf = 1;
    fact.health.nan = 2;
    birth.outputs.push_back(fact);
    return birth;
}

TEST(Title, AnInfinityThatTheProgramWroteIsNotOneThatTheOpMade) {
    Birth birth = birth_of("aten::lift_fresh", kPosInf);
    birth.intended = true;
    EXPECT_EQ(happened(birth), "`aten::lift_fresh` wrote infinities of the program's own in 1 of 4 values");
}

TEST(Title, AnOpOfWhichNothingElseIsKnownMadeIt) {
    Birth birth = birth_of("mine::op", kNaN);
    birth.mechanism = Mechanism::OPAQUE;
    EXPECT_EQ(happened(birth), "the custom operator `mine::op` made bad values in 2 of 4 values");
    birth.inputs.emplace_back().exact = true;
    EXPECT_EQ(happened(birth), "the custom operator `mine::op` made bad values out of finite ones in 2 of 4 values");
    birth.op = "aten::mm";
    EXPECT_EQ(happened(birth), "`aten::mm` made bad values out of finite ones in 2 of 4 values");
}

TEST(Title, AMechanismSaysWhatTheOpDid) {
    Birth birth = birth_of("aten::log", kNaN);
    birth.mechanism = Mechanism::DOM;
    EXPECT_EQ(happened(birth), "`aten::log` left its domain in 2 of 4 values");
}

TEST(Title, AnAlignmentThatDoesNotExistIsNoValueThatCameIn) {
    Birth birth = birth_of("aten::_ctc_loss", kPosInf);
    birth.mechanism = Mechanism::DATA;
    EXPECT_EQ(happened(birth), "`aten::_ctc_loss` could not align targets with their inputs in 1 of 4 values");
    birth.op = "aten::mul";
    EXPECT_EQ(happened(birth), "`aten::mul` took in a bad value in 1 of 4 values");
}

}  // namespace
}  // namespace numsan
