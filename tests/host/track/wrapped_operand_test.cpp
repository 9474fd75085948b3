// Operands that are out of order because of an integer that wrapped around, and such that only look like it.
#include "host/track/wrapped_operand.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "host/cause/measure.h"
#include "tests/host/verdict/made_up_integers.h"

namespace numsan {
namespace {

class WrappedOperandTest : public testing::Test {
  protected:
    void ran(const char* name, std::vector<TensorView> inputs, const TensorView& output,
             IntegerOp computes = IntegerOp::None, std::vector<double> scalars = {}) {
        MadeUpOp& op =
            past.emplace_back(name, std::move(inputs), std::vector<TensorView>{output}, OpClass::Other, scalars);
        op.info.integer_op = computes;
        const OpEvent event = op.event();
        if (IntegerWraps::concerns(event)) lineage.wraps().look(event, OpSeq{seq});
        lineage.add(event, output, Range{}, OpSeq{seq++}, 1, 0);
    }
    /// What is told of `operand`, of an op that needs its sign.
    std::string told(const MadeUp& operand, bool overflows = false) {
        const auto found =
            wrapped_operand(operand.view(), scanner.health(operand.view()), overflows, OpSeq{seq}, lineage);
        return found ? found->evidence : "";
    }

    const char* const kProduct =
        "the operand comes from an integer that had wrapped around: `mul` stored -1794967296 in place of 2500000000, "
        "as int32 holds -2147483648 to 2147483647";
    CpuScanner scanner;
    Lineage lineage;
    std::deque<MadeUpOp> past;
    int64_t seq = 1;
    MadeUpIntegers<int32_t> side{50000}, area{-1794967296};
};

TEST_F(WrappedOperandTest, ANegativeNumberThatShouldHaveBeenPositive) {
    const MadeUp cast{-1794967296.0F}, shifted{-1794967295.0F}, scaled{-1794.9F};
    ran("aten::mul", {side.view(), side.view()}, area.view(), IntegerOp::Multiply);
    ran("aten::_to_copy", {area.view()}, cast.returned());
    EXPECT_EQ(told(cast), kProduct);
    ran("aten::add", {cast.view()}, shifted.returned(), IntegerOp::None, {1, 1});
    EXPECT_EQ(told(shifted), kProduct);
    ran("aten::div", {shifted.view()}, scaled.returned(), IntegerOp::None, {1e6});
    EXPECT_EQ(told(scaled), kProduct);
}

TEST_F(WrappedOperandTest, OnlyWhatThePathDoesNotExplain) {
    const MadeUp cast{-1794967296.0F}, centred{-3000000000.0F}, scaled{-3, 3}, lost{-1}, other{-1794967296.0F};
    ran("aten::mul", {side.view(), side.view()}, area.view(), IntegerOp::Multiply);
    ran("aten::_to_copy", {area.view()}, cast.returned());
    ran("aten::sub", {cast.view()}, centred.returned(), IntegerOp::None, {1.2e9, 1});
    EXPECT_NE(told(centred), "") << "without it, 1.3e9 would be there";
    ran("aten::mul", {centred.view()}, scaled.returned(), IntegerOp::None, {1e-9});
    EXPECT_EQ(told(scaled), "") << "values less their mean may be negative anyway";
    ran("aten::log", {cast.view()}, lost.returned());
    EXPECT_EQ(told(lost), "") << "another op";
    EXPECT_EQ(told(other), "") << "another tensor";
    const MadeUp positive{5};
    ran("aten::_to_copy", {area.view()}, positive.returned());
    EXPECT_EQ(told(positive), "") << "not out of order for its sign";
}

TEST_F(WrappedOperandTest, AFractionThatACastCut) {
    MadeUpIntegers<uint8_t> cut{0}, whole{2};
    const MadeUp deviation{0.25F}, view{0}, shifted{0}, large{2.5F};
    ran("aten::_to_copy", {deviation.view()}, cut.view(), IntegerOp::Cast);
    ran("aten::_to_copy", {cut.view()}, view.returned());
    EXPECT_EQ(told(view),
              "the operand comes from a fraction that a cast cut off: it stored 0 in place of 0.25, as uint8 holds "
              "whole numbers");
    EXPECT_EQ(told(view, true), "") << "no size is at fault";
    ran("aten::add", {view.view()}, shifted.returned());
    EXPECT_EQ(told(shifted), "");
    ran("aten::_to_copy", {large.view()}, whole.view(), IntegerOp::Cast);
    const MadeUp zero{0};
    ran("aten::_to_copy", {whole.view()}, zero.returned());
    EXPECT_EQ(told(zero), "") << "2 is left of it";
}

TEST_F(WrappedOperandTest, SquaresThatWrappedMakeAVarianceZero) {
    MadeUpIntegers<uint8_t> values{180}, squares{144};
    const MadeUp cast{144}, variance{0}, deviation{0}, difference{-32256};
    ran("aten::mul", {values.view(), values.view()}, squares.view(), IntegerOp::Multiply);
    ran("aten::_to_copy", {squares.view()}, cast.returned());
    ran("aten::sub", {cast.view()}, difference.returned());
    ran("aten::clamp_min", {difference.view()}, variance.returned());
    ran("aten::sqrt", {variance.view()}, deviation.returned());
    EXPECT_EQ(told(deviation),
              "the operand comes from an integer that had wrapped around: `mul` stored 144 in place of 32400, as uint8 "
              "holds 0 to 255");
    const MadeUp positive{3};
    ran("aten::sqrt", {variance.view()}, positive.returned());
    EXPECT_EQ(told(positive), "") << "no zero";
}

TEST_F(WrappedOperandTest, AZeroThatShouldNotHaveBeen) {
    MadeUpIntegers<uint8_t> count{255}, next{0};
    const MadeUp cast{0, 3}, shifted{0};
    ran("aten::add", {count.view()}, next.view(), IntegerOp::Add, {1, 1});
    ran("aten::_to_copy", {next.view()}, cast.returned());
    EXPECT_EQ(told(cast),
              "the operand comes from an integer that had wrapped around: `add` stored 0 in place of 256, as uint8 "
              "holds 0 to 255");
    ran("aten::add", {cast.view()}, shifted.returned());
    EXPECT_EQ(told(shifted), "") << "which zero this is cannot be told";
}

TEST_F(WrappedOperandTest, ADifferenceThatCameOutLarge) {
    MadeUpIntegers<uint8_t> dark{3}, bright{120}, difference{139};
    const MadeUp cast{139}, small{100};
    ran("aten::sub", {dark.view(), bright.view()}, difference.view(), IntegerOp::Subtract, {1});
    ran("aten::_to_copy", {difference.view()}, cast.returned());
    EXPECT_EQ(told(cast), "");
    EXPECT_NE(told(cast, true), "");
    ran("aten::_to_copy", {difference.view()}, small.returned());
    EXPECT_EQ(told(small, true), "") << "it is not among these values";
}

TEST_F(WrappedOperandTest, CastsAndSumsOfWhichOnlyTheSignIsKnown) {
    const MadeUp level{200.5F}, first{-56.0F};
    MadeUpIntegers<int8_t> code{-56};
    ran("aten::_to_copy", {level.view()}, code.view(), IntegerOp::Cast);
    ran("aten::_to_copy", {code.view()}, first.returned());
    EXPECT_EQ(told(first),
              "the operand comes from an integer that had wrapped around: a cast stored -56 in place of 200.5, as int8 "
              "holds -128 to 127");
    MadeUpIntegers<int32_t> gaps{2000000000, 2000000000}, times{2000000000, -294967296};
    const MadeUp second{2e9F, -294967296.0F};
    ran("aten::cumsum", {gaps.view()}, times.view(), IntegerOp::Gather);
    ran("aten::_to_copy", {times.view()}, second.returned());
    EXPECT_EQ(told(second),
              "the operand comes from an integer that had wrapped around: `cumsum` of values from 2000000000 to "
              "2000000000 stored -294967296, as int32 holds -2147483648 to 2147483647");
}

TEST_F(WrappedOperandTest, MeasuredOfFloatsAndOfIntegersThemselves) {
    const MadeUp result{kNan}, cast{-1794967296.0F};
    ran("aten::mul", {side.view(), side.view()}, area.view(), IntegerOp::Multiply);
    OpContext context;
    context.seq = OpSeq{seq++};
    MadeUpOp of_integers("aten::sqrt", {area.view()}, {result.returned()});
    const Features f = measure(of_integers.event(), context, {}, kNaN, lineage);
    EXPECT_EQ(f.wrapped, kProduct);
    EXPECT_EQ(f.wrapped_op, "mul");
    EXPECT_EQ(f.wrapped_type, IntegerType::Int32);
    EXPECT_TRUE(f.operand_known);
    MadeUpOp of_sum("aten::sum", {area.view()}, {result.returned()});
    EXPECT_EQ(measure(of_sum.event(), context, {}, kNaN, lineage).wrapped, kProduct);
    MadeUpOp of_all("aten::mm", {area.view()}, {result.returned()});
    EXPECT_EQ(measure(of_all.event(), context, {}, kNaN, lineage).wrapped, "") << "no operand is at fault";
}

}  // namespace
}  // namespace numsan
