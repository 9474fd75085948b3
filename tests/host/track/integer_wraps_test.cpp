// Integer results that do not fit their type: seen of each op, and of nothing that fits.
#include "host/track/integer_wraps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/host/verdict/made_up_integers.h"

namespace numsan {
namespace {

using Wrap = IntegerWraps::Wrap;

/// What an op that computes `op` stored out of `inputs` in place of what does not fit; nothing is known of it else.
Wrap look(IntegerOp op, std::vector<TensorView> inputs, const TensorView& output, std::vector<double> scalars = {},
          const char* name = "aten::op", const char* overload = "") {
    MadeUpOp made(name, std::move(inputs), {output}, OpClass::Other, std::move(scalars));
    made.info.integer_op = op;
    made.info.overload = overload;
    IntegerWraps wraps;
    EXPECT_TRUE(IntegerWraps::concerns(made.event()));
    wraps.look(made.event(), OpSeq{7});
    Wrap wrap;
    return wraps.find(output.storage, OpSeq{7}, wrap) ? wrap : Wrap{};
}

void expect(const IntegerWraps::Element& element, double exact, int64_t stored) {
    EXPECT_EQ(element.known, IntegerWraps::kExact);
    EXPECT_EQ(element.exact, exact);
    EXPECT_EQ(element.stored, stored);
}

bool is_nothing(const Wrap& wrap) { return wrap.op == nullptr; }

TEST(IntegerWraps, SumsOfTensorsAndNumbers) {
    const MadeUpIntegers<int8_t> a{100, 1}, b{56, 2}, sum{-100, 3}, fine{99, 3};
    const Wrap wrap = look(IntegerOp::Add, {a.view(), b.view()}, sum.view(), {1});
    expect(wrap.negative, 156, -100);
    EXPECT_EQ(static_cast<IntegerType>(wrap.type), IntegerType::Int8);
    EXPECT_EQ(wrap.zero.known, IntegerWraps::kNothing);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {b.view(), b.view()}, fine.view(), {1})));
    expect(look(IntegerOp::Add, {a.view()}, sum.view(), {56, 1}).negative, 156, -100);
    expect(look(IntegerOp::Add, {a.view(), b.view()}, sum.view(), {3}).negative, 268, -100);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {a.view()}, fine.view(), {1, 1})));
}

TEST(IntegerWraps, DifferencesOfUnsignedNumbers) {
    const MadeUpIntegers<uint8_t> a{3}, b{5}, difference{254};
    expect(look(IntegerOp::Subtract, {a.view(), b.view()}, difference.view(), {1}).positive, -2, 254);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Subtract, {b.view(), a.view()}, difference.view(), {1})));
    expect(look(IntegerOp::SubtractFrom, {b.view()}, difference.view(), {3, 1}).positive, -2, 254);
    expect(look(IntegerOp::SubtractFrom, {b.view(), a.view()}, difference.view(), {1}).positive, -2, 254);
}

TEST(IntegerWraps, WhatWasWrittenOverFollowsFromTheResult) {
    const MadeUpIntegers<int8_t> counter{-128}, later{-127}, down{127}, one{1};
    expect(look(IntegerOp::Add, {counter.view(), one.view()}, counter.view(kWritten), {1}).negative, 128, -128);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {later.view(), one.view()}, later.view(kWritten), {1})));
    expect(look(IntegerOp::Subtract, {down.view(), one.view()}, down.view(kWritten), {1}).positive, -129, 127);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {counter.view(), counter.view()}, counter.view(kWritten), {1})))
        << "both operands are gone";
    EXPECT_TRUE(is_nothing(look(IntegerOp::Multiply, {counter.view(), one.view()}, counter.view(kWritten))));
}

TEST(IntegerWraps, ProductsAndPowers) {
    const MadeUpIntegers<int32_t> a{50000, 65536}, product{-1794967296, 0};
    const Wrap wrap = look(IntegerOp::Multiply, {a.view(), a.view()}, product.view());
    expect(wrap.negative, 2500000000, -1794967296);
    expect(wrap.zero, 4294967296, 0);
    expect(look(IntegerOp::Power, {a.view()}, product.view(), {2}, "aten::pow", "Tensor_Scalar").zero, 4294967296, 0);
    const MadeUpIntegers<int32_t> exponent{40}, power{0}, number{7}, scaled{-5};
    expect(look(IntegerOp::Power, {exponent.view()}, power.view(), {2}, "aten::pow", "Scalar").zero, 1099511627776, 0);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Multiply, {number.view()}, scaled.view(), {2})));
    expect(look(IntegerOp::Multiply, {number.view()}, scaled.view(), {1e9}).negative, 7e9, -5);
}

TEST(IntegerWraps, ProductsOfInt64AreLookedAtAndSumsAreNot) {
    const MadeUpIntegers<int64_t> a{4000000000}, product{-2446744073709551616};
    expect(look(IntegerOp::Multiply, {a.view(), a.view()}, product.view()).negative, 1.6e19, -2446744073709551616);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {product.view(), product.view()}, a.view(), {1})));
}

TEST(IntegerWraps, CastsToNarrowerTypes) {
    const MadeUp from{200.5F, -3.5F}, bad{kNan, kInf}, edge{127.9F, -128.9F};
    const MadeUpIntegers<int8_t> to{-56, -3};
    expect(look(IntegerOp::Cast, {from.returned()}, to.view()).negative, 200.5, -56);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Cast, {bad.returned()}, to.view()))) << "not for its range";
    EXPECT_TRUE(is_nothing(look(IntegerOp::Cast, {edge.returned()}, to.view()))) << "a cast cuts off the rest";
    const MadeUpIntegers<int32_t> wide{256, 1};
    const MadeUpIntegers<uint8_t> narrow{0, 1};
    expect(look(IntegerOp::Cast, {wide.view()}, narrow.view()).zero, 256, 0);
    expect(look(IntegerOp::Cast, {narrow.view(), wide.view()}, narrow.view(kWritten)).zero, 256, 0);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Cast, {narrow.view()}, wide.view())));
}

TEST(IntegerWraps, SignsOfSumsAndProductsOverDimensions) {
    const MadeUpIntegers<int16_t> counts{30000, 30000, 1}, total{-5535}, running{30000, -5536, -5535}, mixed{-1, 5};
    expect(look(IntegerOp::Gather, {counts.view()}, total.view(), {}, "aten::sum").negative, 60001, -5535);
    const Wrap wrap = look(IntegerOp::Gather, {counts.view()}, running.view(), {}, "aten::cumsum");
    EXPECT_EQ(wrap.negative.known, IntegerWraps::kSign);
    EXPECT_EQ(wrap.negative.stored, -5536);
    EXPECT_EQ(wrap.least, 1);
    EXPECT_EQ(wrap.most, 30000);
    EXPECT_TRUE(is_nothing(look(IntegerOp::Gather, {mixed.view()}, running.view(), {}, "aten::cumsum")));
    const MadeUpIntegers<int16_t> none{0, 3}, product{0};
    EXPECT_TRUE(is_nothing(look(IntegerOp::Gather, {none.view()}, product.view(), {}, "aten::prod")));
    EXPECT_EQ(look(IntegerOp::Gather, {counts.view()}, product.view(), {}, "aten::prod").zero.known,
              IntegerWraps::kSign);
}

TEST(IntegerWraps, OperandsAreSpreadOverTheResult) {
    MadeUpIntegers<int8_t> rows{100, 1}, columns{50, 30, 1}, sums{-106, -126, 101, 51, 31, 2};
    const int64_t shape[] = {2, 3}, strides[] = {3, 1}, row_shape[] = {2, 1}, row_strides[] = {1, 1};
    TensorView row = rows.view(), output = sums.view();
    row.ndim = output.ndim = 2;
    row.sizes = row_shape;
    row.strides = row_strides;
    output.sizes = shape;
    output.strides = strides;
    expect(look(IntegerOp::Add, {row, columns.view()}, output, {1}).negative, 150, -106);
    rows.values = {1, 1};
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {row, columns.view()}, output, {1})));
}

TEST(IntegerWraps, ThatOfATensorWhichCannotBeReadIsNot) {
    const MadeUpIntegers<int8_t> a{100}, sum{-56};
    TensorView elsewhere = a.view();
    elsewhere.device = Device::Cuda;
    EXPECT_TRUE(is_nothing(look(IntegerOp::Add, {elsewhere, a.view()}, sum.view(), {1})));
    EXPECT_FALSE(IntegerWraps::concerns(MadeUpOp("aten::add", {a.view()}, {sum.view()}).event())) << "no such op";
}

TEST(IntegerWraps, OldOnesMakeRoom) {
    const MadeUpIntegers<int8_t> a{100}, sum{-56};
    MadeUpOp made("aten::add", {a.view(), a.view()}, {sum.view()}, OpClass::Other, {1});
    made.info.integer_op = IntegerOp::Add;
    IntegerWraps wraps;
    for (int64_t seq = 0; seq < 1000; ++seq) wraps.look(made.event(), OpSeq{seq});
    Wrap wrap;
    EXPECT_FALSE(wraps.find(&sum, OpSeq{0}, wrap));
    EXPECT_TRUE(wraps.find(&sum, OpSeq{999}, wrap));
    EXPECT_FALSE(wraps.find(&a, OpSeq{999}, wrap)) << "another storage";
    EXPECT_FALSE(wraps.find(nullptr, OpSeq::None, wrap));
}

}  // namespace
}  // namespace numsan
