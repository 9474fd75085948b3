// Which op had rounded an operand to a limit of its own, and what was done with its results since.
#include "host/cause/rounded_operand.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "host/birth/births.h"
#include "host/ops/op_table.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class RoundedBefore : public testing::Test {
  protected:
    /// Of the only input of `op`.
    RoundedOperand of(const MadeUpOp& op) {
        const TensorView& operand = op.inputs[0];
        TensorFact fact;
        fact.health = scanner.health(operand);
        return rounded_operand(traits_of(op.event()), operand, &fact, seq, lineage);
    }
    RoundedOperand of_log(const MadeUp& operand) { return of({"aten::log", {operand.view()}, {out.returned()}}); }
    /// `op` wrote `output` out of `inputs`, before what is asked about.
    void wrote(const char* op, const std::vector<TensorView>& inputs, const MadeUpTensor& output, bool read = true) {
        wrote_view(op, inputs, op[std::strlen(op) - 1] == '_' ? output.written() : output.returned(), read);
    }
    void wrote_view(const char* op, const std::vector<TensorView>& inputs, const TensorView& view, bool read = true) {
        past.emplace_back(op, inputs, std::vector<TensorView>{view}, op_table::listed_class(op));
        const Range range = read ? scanner.range(view) : Range{};
        lineage.add(past.back().event(), view, range, std::exchange(seq, OpSeq{number(seq) + 1}), 1, 0);
    }

    CpuScanner scanner;
    Lineage lineage;
    OpSeq seq{1};
    std::deque<MadeUpOp> past;
    MadeUp out{kInf};
};

TEST_F(RoundedBefore, NegativeOperandOfALogarithmWasNotRoundedToItsLimit) {
    MadeUp logits{-200, 3}, probability{0, 0.9f}, below{-1, -0.1f};
    wrote("aten::sigmoid", {logits.view()}, probability);
    EXPECT_EQ(of_log(probability).op, "sigmoid");
    wrote("aten::sub", {probability.view()}, below);
    EXPECT_EQ(of_log(below).op, "");
    EXPECT_EQ(of({"aten::log1p", {below.view()}, {out.returned()}}).op, "sigmoid") << "log1p(-1)";
}

TEST_F(RoundedBefore, ZeroOfAnOpThatHasItsOwnIsNoLimitOfTheOpsBefore) {
    MadeUp times{-3, 2}, hours{0.2f, 9}, whole{0, 9}, chosen{0, 9};
    const auto behind = [&](const char* op) {
        wrote("aten::exp", {times.view()}, hours);
        wrote(op, {hours.view()}, whole);
        wrote("aten::index", {whole.view()}, chosen);
        return of_log(chosen).op;
    };
    for (const char* op : {"aten::floor", "aten::round", "aten::relu", "aten::poisson", "aten::bernoulli",
                           "aten::remainder", "aten::zeros_like", "aten::rand_like", "aten::full_like"})
        EXPECT_EQ(behind(op), "") << op;
    for (const char* op : {"aten::mul", "aten::where", "aten::masked_fill", "aten::index", "aten::rsub", "aten::sum",
                           "aten::scatter_add", "aten::_to_copy", "aten::log", "aten::topk", "aten::maximum"})
        EXPECT_EQ(behind(op), "exp") << op;
    EXPECT_EQ(behind("aten::clamp"), "clamp") << "the bound itself is the limit";
}

TEST_F(RoundedBefore, LimitOfOneOperandIsNoMatterOfTheOther) {
    MadeUp times{-3, 2}, whole{0, 9}, hours{0.2f, 9}, chosen{0, 9};
    wrote("aten::exp", {times.view()}, hours);
    wrote("aten::floor", {times.view()}, whole);
    wrote("aten::mul", {whole.view(), hours.view()}, chosen);
    EXPECT_EQ(of_log(chosen).op, "exp");
}

TEST_F(RoundedBefore, LimitOfWhichAPartWasWrittenOver) {
    MadeUp logits{-200, 3}, chance{0, 0.9f}, value({0.5f}, 0), part{0};
    TensorView first = part.written();
    first.storage = chance.view().storage;
    wrote("aten::fill_", {}, value);  // remembered, as what is lifted may be
    for (const char* op : {"aten::fill_", "aten::copy_", "aten::index_put_"}) {
        wrote("aten::sigmoid", {logits.view()}, chance);
        wrote_view(op, {first, value.view()}, first);
        EXPECT_EQ(of_log(chance).op, "sigmoid") << op;
    }
    wrote("aten::sigmoid", {logits.view()}, chance);
    wrote("aten::fill_", {chance.view(), value.view()}, chance);
    EXPECT_EQ(of_log(chance).op, "") << "all of it";
}

TEST_F(RoundedBefore, OfSeveralTheOneWhoseResultsCameNearZeroMadeTheZeros) {
    MadeUp logits{-1, 0}, distances{-200, -40}, weights{0.3f, 0.7f}, densities{0, 4e-18f}, terms{0, 1e-18f}, sum{0};
    wrote("aten::exp", {distances.view()}, densities);
    wrote("aten::_softmax", {logits.view()}, weights);
    wrote("aten::mul", {weights.view(), densities.view()}, terms);
    wrote("aten::sum", {terms.view()}, sum);
    const RoundedOperand mixture = of_log(sum);
    EXPECT_EQ(mixture.op, "exp");
    EXPECT_TRUE(mixture.summed);
    EXPECT_FALSE(mixture.subtracted);
    EXPECT_FALSE(mixture.matrix_product);
    MadeUp near_one{0.2f, 0.9f};
    wrote("aten::exp", {distances.view()}, near_one);
    wrote("aten::mul", {weights.view(), near_one.view()}, terms);
    wrote("aten::sum", {terms.view()}, sum);
    EXPECT_EQ(of_log(sum).op, "_softmax") << "the nearest, where none is much nearer to zero";
}

TEST_F(RoundedBefore, OfAResultThatWasNotReadNothingIsCompared) {
    MadeUp logits{-1, 0}, odds{-2, 2}, weights{0.3f, 0.7f}, gate{1e-6f, 0.9f}, product{0, 0.5f}, rest{0, 0.5f};
    wrote("aten::sigmoid", {odds.view()}, gate);
    wrote("aten::_softmax", {logits.view()}, weights, false);
    wrote("aten::mul", {weights.view(), gate.view()}, product);
    const RoundedOperand nearest = of_log(product);
    EXPECT_EQ(nearest.op, "_softmax");
    wrote("aten::_softmax", {logits.view()}, weights);
    wrote("aten::mul", {weights.view(), gate.view()}, product);
    EXPECT_EQ(of_log(product).op, "sigmoid");
    wrote("aten::rsub", {product.view()}, rest);
    EXPECT_EQ(of_log(rest).op, "_softmax") << "one less a value near one";
}

TEST_F(RoundedBefore, WhatWasDoneSinceIsOfItsOwnWay) {
    MadeUp a{-200, 1}, growth{0, 2.7f}, other{1, 2}, total{3}, share{0, 0.9f}, left{0, 1};
    wrote("aten::exp", {a.view()}, growth);
    wrote("aten::sum", {other.view()}, total);
    wrote("aten::div", {growth.view(), total.view()}, share);
    EXPECT_EQ(of_log(share).op, "exp");
    EXPECT_FALSE(of_log(share).summed) << "the divisor was";
    wrote("aten::mm", {growth.view(), other.view()}, share);
    EXPECT_TRUE(of_log(share).matrix_product);
    EXPECT_FALSE(of_log(share).summed);
    for (const char* op : {"aten::rsub", "aten::sub", "aten::neg"}) {
        wrote("aten::exp", {a.view()}, growth);
        wrote(op, {growth.view()}, left);
        EXPECT_TRUE(of_log(left).subtracted) << op;
    }
    wrote("aten::sub", {a.view(), other.view()}, left);
    wrote("aten::exp", {left.view()}, growth);
    EXPECT_FALSE(of_log(growth).subtracted) << "before it was rounded";
}

}  // namespace
}  // namespace numsan
