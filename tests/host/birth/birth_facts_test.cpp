// What a birth says of its operands: which of them is counted by powers of two.
#include "host/birth/birth_facts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class BirthFactsTest : public testing::Test {
  protected:
    Birth counted(const MadeUpOp& op, StackId stack = 1) {
        Birth birth;
        birth.kind = kPosInf;
        birth.stack = stack;
        facts.describe(birth, op.event());
        facts.count_exponents(birth, op.event());
        return birth;
    }

    CpuScanner scanner;
    LossHistory losses;
    Lineage lineage;
    ParameterHistory parameters;
    BirthFacts facts{scanner, losses, lineage, parameters};
    MadeUp divisor{0, 4, 5, 0.25f}, dividend{1, 2, 3, 400};
    MadeUp result{kInf, 1, 1, 1};
};

TEST_F(BirthFactsTest, TheOperandWithZerosIsCountedBeforeTheLargest) {
    const Birth birth = counted(MadeUpOp("aten::div", {dividend.view(), divisor.view()}, {result.returned()}));
    ASSERT_EQ(birth.inputs.size(), 2u);
    EXPECT_TRUE(birth.inputs[0].exponents.counts.empty());
    EXPECT_EQ(birth.inputs[1].exponents.first, -2);
    EXPECT_EQ(birth.inputs[1].exponents.counts, (std::vector<int64_t>{1, 0, 0, 0, 2}));
}

TEST_F(BirthFactsTest, ElseTheLargestIs) {
    divisor.values[0] = 8;
    const Birth birth = counted(MadeUpOp("aten::div", {dividend.view(), divisor.view()}, {result.returned()}));
    EXPECT_EQ(birth.inputs[0].exponents.counts, (std::vector<int64_t>{1, 2, 0, 0, 0, 0, 0, 0, 1}));
    EXPECT_TRUE(birth.inputs[1].exponents.counts.empty());
}

TEST_F(BirthFactsTest, WhatWasOverwrittenIsNotCounted) {
    const Birth birth = counted(MadeUpOp("aten::exp_", {result.view()}, {result.written()}));
    EXPECT_TRUE(birth.inputs[0].exponents.counts.empty());
}

TEST_F(BirthFactsTest, ARunCountsSoManyValuesAndOnePlaceFew) {
    const MadeUp large(std::vector<float>(size_t(1) << 22, 2.0f));
    const MadeUpOp op("aten::exp", {large.view()}, {result.returned()});
    int counts = 0;
    for (StackId stack = 1; stack <= 20; ++stack) {
        for (int i = 0; i < 3; ++i) counts += counted(op, stack).inputs[0].exponents.counts.empty() ? 0 : 1;
        EXPECT_EQ(counts, std::min<int>(static_cast<int>(stack), 16)) << "one place leaves the rest to others";
    }
}

}  // namespace
}  // namespace numsan
