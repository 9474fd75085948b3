// What is measured around a birth: magnitudes, bounds of results, what the operand at fault came from.
#include "host/cause/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "host/birth/births.h"
#include "host/ops/op_table.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TEST(MagnitudeValue, OfEveryKindOfNumber) {
    EXPECT_EQ(magnitude_value(0x3f800000, DType::Float32), 1);
    EXPECT_EQ(magnitude_value(0x7f7fffff, DType::Float32), 3.4028234663852886e38);
    EXPECT_EQ(magnitude_value(1, DType::Float32), 1.401298464324817e-45);
    EXPECT_EQ(magnitude_value(0x3ff8000000000000, DType::Float64), 1.5);
    EXPECT_EQ(magnitude_value(0x7bff, DType::Float16), 65504);
    EXPECT_EQ(magnitude_value(1, DType::Float16), 5.960464477539063e-08);
    EXPECT_EQ(magnitude_value(0x0400, DType::Float16), 6.103515625e-05);
    EXPECT_EQ(magnitude_value(0x3f80, DType::BFloat16), 1);
    EXPECT_EQ(magnitude_value(0x7e, DType::Float8E4M3Fn), 448);
    EXPECT_EQ(magnitude_value(0x7b, DType::Float8E5M2), 57344);
    EXPECT_EQ(magnitude_value(0, DType::Float16), 0);
}

class Measure : public testing::Test {
  protected:
    /// As Births does it: what the op wrote over is gone.
    Features of(const MadeUpOp& op, KindSet kind = kPosInf) {
        const OpEvent event = op.event();
        std::vector<TensorFact> facts;
        for (const TensorView& input : op.inputs) {
            TensorFact fact;
            fact.exact = !written_by(event, input);
            fact.shape.assign(input.sizes, input.sizes + input.ndim);
            if (fact.exact) fact.health = scanner.health(input);
            facts.push_back(fact);
        }
        return measure(event, context, facts, kind, lineage);
    }
    double estimate(const char* op, std::vector<TensorView> inputs, std::vector<double> scalars = {}) {
        return of(MadeUpOp(op, std::move(inputs), {out.returned()}, OpClass::Other, std::move(scalars)))
            .result_estimate;
    }
    /// `op` wrote `output` out of `inputs`, before what is measured.
    void wrote(const char* op, const std::vector<TensorView>& inputs, const MadeUpTensor& output, bool touched = true,
               std::vector<double> scalars = {}) {
        wrote_view(op, inputs, op[std::strlen(op) - 1] == '_' ? output.written() : output.returned(), touched,
                   std::move(scalars));
    }
    void wrote_view(const char* op, const std::vector<TensorView>& inputs, const TensorView& view, bool touched = true,
                    std::vector<double> scalars = {}) {
        past.emplace_back(op, inputs, std::vector<TensorView>{view}, op_table::listed_class(op), std::move(scalars));
        lineage.add(past.back().event(), view, scanner.range(view),
                    std::exchange(context.seq, OpSeq{number(context.seq) + 1}), 1, touched ? Lineage::kTouched : 0);
    }

    CpuScanner scanner;
    Lineage lineage;
    OpContext context;
    std::deque<MadeUpOp> past;
    MadeUp out{kInf}, big{1e30f}, small{-2e-30f, 3}, none{0, 1};
};

TEST_F(Measure, GainOfAWeight) {
    MadeUp x{1};
    const MadeUp weight({400, -400, 400, 400, 400, 400, 400, 400}, kParameter);
    const int64_t sizes[] = {4, 2}, strides[] = {2, 1};
    TensorView matrix = weight.view();
    matrix.sizes = sizes;
    matrix.strides = strides;
    matrix.ndim = 2;
    EXPECT_DOUBLE_EQ(of({"aten::mm", {x.view(), matrix}, {out.returned()}}).weight_gain, 200) << "four are summed";
    EXPECT_DOUBLE_EQ(of({"aten::mm", {matrix, x.view()}, {out.returned()}}).weight_gain, 100 * std::sqrt(2.0));
    EXPECT_DOUBLE_EQ(of({"aten::convolution", {x.view(), matrix}, {out.returned()}}).weight_gain, 100 * std::sqrt(2.0));
    EXPECT_EQ(of({"aten::mul", {x.view(), matrix}, {out.returned()}}).weight_gain, 0);
    matrix.flags &= ~uint32_t(kRequiresGrad | kLeaf);
    EXPECT_EQ(of({"aten::mm", {x.view(), matrix}, {out.returned()}}).weight_gain, 0) << "no parameter";
    matrix.flags |= kViewOfParameter << kAutogradFactsShift;
    EXPECT_DOUBLE_EQ(of({"aten::mm", {x.view(), matrix}, {out.returned()}}).weight_gain, 200) << "a transposed one";
}

TEST_F(Measure, WhatTheOpRead) {
    context.step = 7;
    context.in_module = context.touched = true;
    MadeUp weight({4e5f}, kParameter);
    MadeUpOp op("aten::mul_", {small.view(), weight.view()}, {out.written()});
    op.grad_enabled = false;
    const Features f = of(op, kNegInf);
    EXPECT_EQ(f.op, "mul");
    EXPECT_EQ(f.kind, kNegInf);
    EXPECT_EQ(f.step, 7);
    EXPECT_TRUE(f.in_module);
    EXPECT_TRUE(f.touched);
    EXPECT_TRUE(f.gradients_off);
    EXPECT_TRUE(f.reads_parameter);
    EXPECT_EQ(f.parameter_max, 4e5);
    EXPECT_EQ(f.operand_max, 4e5);
    EXPECT_FLOAT_EQ(static_cast<float>(f.operand_min), 2e-30f);
    EXPECT_EQ(f.dtype, DType::Float32);
    EXPECT_FALSE(f.narrow);
}

TEST_F(Measure, NarrowIsAnyTensorOfTheOp) {
    MadeUpHalf half{1.5};
    EXPECT_TRUE(of({"aten::mul", {half.view()}, {out.returned()}}).narrow);
    EXPECT_TRUE(of({"aten::_to_copy", {big.view()}, {half.returned()}}).narrow);
    EXPECT_EQ(of({"aten::_to_copy", {big.view()}, {half.returned()}}).dtype, DType::Float16);
    EXPECT_FALSE(of({"aten::mul", {big.view(), half.view(kNumber)}, {out.returned()}}).narrow)
        << "a number that the dispatcher wrapped has no type of its own";
}

TEST_F(Measure, BoundOfTheResult) {
    MadeUp ten{10, 10, 10, 10}, two{2}, hundred{100};
    EXPECT_FLOAT_EQ(static_cast<float>(estimate("aten::mul", {ten.view(), two.view()})), 20);
    EXPECT_EQ(estimate("aten::square", {ten.view()}), 100);
    EXPECT_EQ(estimate("aten::mm", {ten.view(), two.view()}), 10 * 2 * 4) << "four products are added up";
    EXPECT_EQ(estimate("aten::addmm", {hundred.view(), ten.view(), two.view()}), 100 + 10 * 2 * 4);
    EXPECT_EQ(estimate("aten::add", {ten.view(), two.view()}), 12);
    EXPECT_EQ(estimate("aten::sum", {ten.view()}), 40);
    EXPECT_EQ(estimate("aten::linalg_vector_norm", {ten.view()}), 20);
    EXPECT_EQ(estimate("aten::mean", {ten.view()}), 10);
    EXPECT_EQ(estimate("aten::_to_copy", {ten.view()}), 10);
    EXPECT_NEAR(estimate("aten::exp", {ten.view()}), 22026.4658, 1e-3);
    EXPECT_EQ(estimate("aten::exp2", {ten.view()}), 1024);
    EXPECT_EQ(estimate("aten::pow", {ten.view()}, {3}), 1000);
    EXPECT_EQ(estimate("aten::pow", {ten.view(), two.view()}), 100);
    EXPECT_DOUBLE_EQ(estimate("aten::pow", {ten.view()}, {-1}), 0.1);
    EXPECT_EQ(estimate("aten::div", {ten.view(), two.view()}), 5);
    EXPECT_EQ(estimate("aten::reciprocal", {two.view()}), 0.5);
    EXPECT_EQ(estimate("aten::rsqrt", {hundred.view()}), 0.1);
}

TEST_F(Measure, NoBoundWhereThereIsNone) {
    EXPECT_EQ(estimate("aten::div", {big.view(), none.view()}), 0) << "a zero among the divisors";
    EXPECT_EQ(estimate("aten::reciprocal", {none.view()}), 0);
    EXPECT_EQ(estimate("aten::tan", {big.view()}), 0);
    EXPECT_EQ(of({"aten::rand", {}, {out.returned()}}).result_estimate, 0);
}

TEST_F(Measure, NoBoundFromAnOperandThatIsGone) {
    MadeUp x{kInf}, y{2};
    for (const char* op : {"aten::exp_", "aten::exp2_", "aten::expm1_", "aten::square_", "aten::reciprocal_"}) {
        EXPECT_EQ(of({op, {x.view()}, {x.written()}}).result_estimate, 0) << op;
    }
    for (const char* op : {"aten::add_", "aten::sub_", "aten::mul_", "aten::div_"}) {
        EXPECT_EQ(of({op, {x.view(), y.view()}, {x.written()}}).result_estimate, 0) << op;
    }
}

TEST_F(Measure, CopyIsBoundedByWhatIsCopied) {
    MadeUp from{70000};
    MadeUpHalf to{kInf};
    EXPECT_EQ(of({"aten::copy_", {to.view(), from.view()}, {to.written()}, OpClass::Overwriting}).result_estimate,
              70000);
}

TEST_F(Measure, OperandToBlameIsLookedBehind) {
    MadeUp batch{1}, logits{3, 2}, chances{0, 1}, count{0};
    wrote("aten::mm", {batch.view()}, logits);
    wrote("aten::_softmax", {logits.view()}, chances);
    wrote("aten::sum", {batch.view()}, count, false);
    context.seq = OpSeq{50};
    const Features log = of({"aten::log", {chances.view()}, {out.returned()}}, kNegInf);
    EXPECT_EQ(log.rounded.op, "_softmax");
    EXPECT_TRUE(log.operand_touched);
    EXPECT_TRUE(log.operand_known);
    const Features div = of({"aten::div", {chances.view(), count.view()}, {out.returned()}});
    EXPECT_EQ(div.rounded.op, "") << "the divisor is to blame, not the numerator";
    EXPECT_EQ(div.reduction, "sum");
    EXPECT_FALSE(div.operand_touched);
    EXPECT_TRUE(div.operand_known);
    const Features fresh = of({"aten::log", {none.view()}, {out.returned()}}, kNegInf);
    EXPECT_FALSE(fresh.operand_known);
    EXPECT_FALSE(fresh.operand_touched);
    EXPECT_TRUE(of({"aten::log", {none.view(kRequiresGrad)}, {out.returned()}}).operand_touched);
}

TEST_F(Measure, OperandMadeOfNumbersAlone) {
    MadeUp steps({1, 0.5f, 0}, 0), left({0, 0.5f, 1}, 0), batch({1, 2, 3}, 0), one({1}, 0);
    const auto constant = [&] {
        return of({"aten::div", {one.view(), left.view()}, {out.returned()}}).operand_constant;
    };
    EXPECT_FALSE(constant()) << "nothing is remembered of it";
    wrote("aten::linspace", {}, steps, false);
    wrote("aten::rsub", {steps.view()}, left, false);
    EXPECT_TRUE(constant());
    wrote("aten::zeros_like", {batch.view()}, left, false);
    EXPECT_TRUE(constant()) << "no value of the batch is read";
    wrote("aten::sub", {steps.view(), batch.view()}, left, false);
    EXPECT_FALSE(constant()) << "nobody saw where the batch came from";
    wrote("aten::randn", {}, batch, false);
    wrote("aten::sub", {steps.view(), batch.view()}, left, false);
    EXPECT_FALSE(constant()) << "chance";
    wrote("aten::mul", {steps.view()}, left, true);
    EXPECT_FALSE(constant()) << "a parameter";
}

TEST_F(Measure, NearestAncestorNamesItself) {
    MadeUp a{1}, b{1}, c{1}, d{0};
    wrote("aten::sigmoid", {a.view()}, b);
    wrote("aten::mean", {b.view()}, c);
    wrote("aten::exp", {c.view()}, d);
    context.seq = OpSeq{50};
    const Features f = of({"aten::log", {d.view()}, {out.returned()}});
    EXPECT_EQ(f.rounded.op, "exp");
    EXPECT_EQ(f.reduction, "mean");
}

TEST_F(Measure, RoundedBefore) {
    MadeUp single{1, 2};
    MadeUpHalf half{1, 2};
    wrote("aten::_to_copy", {big.view()}, half);
    wrote("aten::_to_copy", {half.view()}, single);
    context.seq = OpSeq{50};
    EXPECT_TRUE(of({"aten::log", {single.view()}, {out.returned()}}).narrow_upstream);
    EXPECT_FALSE(of({"aten::log", {single.view()}, {out.returned()}}).narrow);
    EXPECT_FALSE(of({"aten::log", {big.view()}, {out.returned()}}).narrow_upstream);
}

TEST_F(Measure, GrowthThroughTheOpsBefore) {
    std::deque<MadeUp> layers;
    layers.emplace_back(std::vector<float>{1, 1});
    for (int i = 0; i < 5; ++i) {
        layers.emplace_back(std::vector<float>{layers.back().values[0] * 100, 1});
        wrote("aten::mm", {layers[layers.size() - 2].view()}, layers.back());
    }
    context.seq = OpSeq{50};
    const Features f = of({"aten::mm", {layers.back().view()}, {out.returned()}});
    EXPECT_EQ(f.growing_ops, 4);
    EXPECT_FLOAT_EQ(static_cast<float>(f.growth), 1e8f);
    const Features flat = of({"aten::mm", {layers[1].view()}, {out.returned()}});
    EXPECT_EQ(flat.growing_ops, 0);
}

TEST_F(Measure, ZeroThatItsTypeMadeOfASmallValue) {
    MadeUpHalf variance{0, 1}, kept{0, 1}, root{0, 1}, little{1e-4, 1.5e-4}, square{0, 0};
    wrote("aten::add", {variance.view()}, variance);
    wrote("aten::add", {variance.view()}, kept);
    wrote("aten::sqrt", {kept.view()}, root);
    EXPECT_EQ(of(MadeUpOp("aten::reciprocal", {root.view()}, {out.returned()})).flushed,
              "the number that was added to keep it from zero is zero in float16");
    wrote("aten::relu", {kept.view()}, root);
    EXPECT_EQ(of(MadeUpOp("aten::reciprocal", {root.view()}, {out.returned()})).flushed, "") << "zero by itself";
    wrote("aten::clamp_min", {variance.view()}, kept, true, {0});
    EXPECT_EQ(of(MadeUpOp("aten::reciprocal", {kept.view()}, {out.returned()})).flushed, "") << "bounded by zero";
    wrote("aten::clamp_min", {variance.view()}, kept, true, {3e-8});
    EXPECT_EQ(of(MadeUpOp("aten::reciprocal", {kept.view()}, {out.returned()})).flushed, "") << "half holds it";
    wrote("aten::clamp_min", {variance.view()}, kept, true, {1e-12});
    EXPECT_EQ(of(MadeUpOp("aten::reciprocal", {kept.view()}, {out.returned()})).flushed,
              "the number that bounds it from below is zero in float16");
    wrote("aten::clone", {little.view()}, little);
    wrote("aten::square", {little.view()}, square);
    EXPECT_EQ(of(MadeUpOp("aten::log", {square.view()}, {out.returned()})).flushed,
              "square of values up to 2.25e-08 is zero in float16");
    MadeUpHalf factors({0.5, 0.5}, 0, DType::BFloat16), product({1e-40, 0}, 0, DType::BFloat16);
    wrote("aten::clone", {factors.view()}, factors);
    wrote("aten::cumprod", {factors.view()}, product);
    EXPECT_EQ(of(MadeUpOp("aten::log", {product.view()}, {out.returned()})).flushed,
              "cumprod went down to 9.18e-41, and bfloat16 holds nothing below 9.18e-41");
    MadeUp single{0, 1};
    wrote("aten::add", {out.view()}, single);
    EXPECT_EQ(of(MadeUpOp("aten::log", {single.view()}, {out.returned()})).flushed, "") << "of narrow types alone";
}

TEST_F(Measure, IntegerThatIsDividedBy) {
    MadeUp pooled{1, 2}, lengths{0, 3};
    wrote("aten::sum", {lengths.view()}, lengths, false);
    TensorView integers = lengths.view();
    integers.flags &= ~kScannable;
    const Features f = of(MadeUpOp("aten::div", {pooled.view(), integers}, {out.returned()}));
    EXPECT_TRUE(f.operand_known);
    EXPECT_EQ(f.reduction, "sum");
    EXPECT_EQ(f.operand_elements, 2);
    EXPECT_FALSE(f.operand_touched);
}

}  // namespace
}  // namespace numsan
