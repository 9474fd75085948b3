// Results that were too small for their type, shown from what the op read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/birth/zeros.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

std::optional<std::string> flushed(const char* op, std::vector<TensorView> inputs, const MadeUpTensor& output,
                                   std::vector<double> scalars = {}) {
    return flushed_share(
        MadeUpOp(op, std::move(inputs), {output.returned()}, OpClass::Other, std::move(scalars)).event(), 0,
        CpuScanner(), Lineage());
}

TEST(FlushedShare, SaysWhatWasMeasured) {
    MadeUpHalf a{1e-4, 2e-4, 1, 0}, b{1e-5, 1e-5, 1, 1}, product{0, 0, 1, 0};
    EXPECT_EQ(flushed("aten::mul", {a.view(), b.view()}, product),
              "2 of 3 results of mul that should not be zero are: the largest is at most 1, and float16 holds nothing "
              "between 0 and "
              "5.96e-08");
}

TEST(FlushedShare, ZerosOfAnOperandAreZeros) {
    MadeUpHalf a{0, 0, 0, 1}, b{1, 1, 1, 1}, product{0, 0, 0, 1};
    EXPECT_FALSE(flushed("aten::mul", {a.view(), b.view()}, product));
    MadeUpHalf quotient{0, 0, 0, 1};
    EXPECT_FALSE(flushed("aten::div", {a.view(), b.view()}, quotient));
}

TEST(FlushedShare, HalfOfThemMustBe) {
    MadeUpHalf a{1e-4, 1, 1, 1}, b{1e-5, 1, 1, 1}, one{0, 1, 1, 1}, two{0, 0, 1, 1};
    EXPECT_FALSE(flushed("aten::mul", {a.view(), b.view()}, one));
    EXPECT_TRUE(flushed("aten::mul", {a.view(), b.view()}, two));
}

TEST(FlushedShare, CastsSquaresAndQuotients) {
    MadeUp tiny{1e-9f, -1e-9f};
    MadeUpHalf zero{0, 0}, small{1e-5, 1e-5}, large{1e4, 1e4};
    EXPECT_EQ(flushed("aten::_to_copy", {tiny.view()}, zero),
              "2 of 2 results of _to_copy that should not be zero are: the largest is at most 1e-09, and float16 holds "
              "nothing "
              "between 0 and 5.96e-08");
    EXPECT_TRUE(flushed("aten::square", {small.view()}, zero));
    EXPECT_TRUE(flushed("aten::pow", {small.view()}, zero, {2}));
    EXPECT_TRUE(flushed("aten::div", {small.view(), large.view()}, zero));
    EXPECT_FALSE(flushed("aten::sub", {small.view(), small.view()}, zero)) << "a difference of equals is zero";
    EXPECT_FALSE(flushed("aten::relu", {small.view()}, zero));
}

TEST(FlushedShare, ProductsOfMatricesOnlyWhenTheyCannotCancel) {
    MadeUpHalf a{1e-5, 1e-5}, b{1e-5, 1e-5}, large{1, -1}, zero{0, 0};
    EXPECT_TRUE(flushed("aten::mm", {a.view(), b.view()}, zero));
    EXPECT_FALSE(flushed("aten::mm", {a.view(), large.view()}, zero)) << "may have cancelled";
}

TEST(FlushedShare, NotInFloat32NotOfBadOperandsNotInPlace) {
    MadeUp tiny{1e-30f, 1e-30f}, zero{0, 0};
    EXPECT_FALSE(flushed("aten::mul", {tiny.view(), tiny.view()}, zero));
    MadeUpHalf a{1e-5, 1e-5}, bad{kInf, 1}, result{0, 0};
    EXPECT_FALSE(flushed("aten::mul", {a.view(), bad.view()}, result));
    EXPECT_FALSE(flushed("aten::mul_", {result.view()}, result)) << "what it was is gone";
    MadeUpHalf zeros{0, 0};
    EXPECT_FALSE(flushed("aten::mul", {a.view(), zeros.view()}, result));
}

TEST(FlushedShare, InOtherNarrowTypes) {
    MadeUp tiny{1e-41f, 1e-41f};
    MadeUpHalf bf16({0, 0}, 0, DType::BFloat16);
    EXPECT_EQ(flushed("aten::_to_copy", {tiny.view()}, bf16),
              "2 of 2 results of _to_copy that should not be zero are: the largest is at most 1e-41, and bfloat16 "
              "holds nothing "
              "between 0 and 9.18e-41");
}

TEST(FlushedShare, NumbersThatMultiply) {
    MadeUpHalf small{1e-4, 2e-4}, zero{0, 0};
    EXPECT_EQ(flushed("aten::mul", {small.view()}, zero, {1e-4}),
              "2 of 2 results of mul that should not be zero are: the largest is at most 2e-08, and float16 holds "
              "nothing between 0 and 5.96e-08");
    EXPECT_TRUE(flushed("aten::div", {small.view()}, zero, {1e5}));
    EXPECT_FALSE(flushed("aten::mul", {small.view()}, zero, {0})) << "times zero is zero";
    EXPECT_FALSE(flushed("aten::mul", {small.view()}, zero)) << "nobody knows the factor";
    TensorView kept = small.view();
    kept.flags &= ~kScannable;
    EXPECT_FALSE(flushed("aten::mul", {small.view(), kept}, zero)) << "a mask of bools";
}

TEST(FlushedShare, ProductsWithATerm) {
    MadeUpHalf a{1e-5, 1e-5}, b{1e-5, 1e-5}, none{0, 0}, bias{0, 1}, zero{0, 0};
    EXPECT_TRUE(flushed("aten::addmm", {none.view(), a.view(), b.view()}, zero));
    EXPECT_FALSE(flushed("aten::addmm", {bias.view(), a.view(), b.view()}, zero)) << "may have cancelled";
    EXPECT_TRUE(flushed("aten::convolution", {a.view(), b.view()}, zero));
    EXPECT_TRUE(flushed("aten::convolution", {a.view(), b.view(), none.view()}, zero));
    EXPECT_TRUE(flushed("aten::convolution_backward", {a.view(), b.view(), b.view()}, zero));
    MadeUpHalf large{1, 1};
    EXPECT_FALSE(flushed("aten::convolution_backward", {a.view(), large.view(), b.view()}, zero));
}

/// A gradient that is multiplied in place: what it was, only the memory of writes knows.
TEST(FlushedShare, InPlaceByWhatWasWrittenBefore) {
    CpuScanner scanner;
    Lineage lineage;
    MadeUpHalf gradient{1e-5, 2e-5}, factor{1e-4};
    const OpInfo made{"aten::mm", "", OpClass::Other, false, 0};
    OpEvent first{};
    const TensorView before = gradient.returned();
    first.op = &made;
    first.outputs = &before;
    first.output_count = 1;
    lineage.add(first, before, scanner.range(before), OpSeq{1}, 1, 0);
    gradient.bits = {0, 0};
    const MadeUpOp scaled("aten::mul_", {gradient.view(), factor.view()}, {gradient.written()});
    EXPECT_EQ(flushed_share(scaled.event(), 0, scanner, lineage),
              "2 of 2 results of mul that should not be zero are: the largest is at most 2e-09, and float16 holds "
              "nothing between 0 and 5.96e-08");
    gradient.bits = {0, 1};
    EXPECT_FALSE(flushed_share(scaled.event(), 0, scanner, lineage)) << "zeros may have been there before";
}

TEST(FlushedShare, EachOfAList) {
    MadeUpHalf a{1e-4, 1e-4}, b{1, 1}, factor{1e-4}, zero{0, 0}, one{1e-4, 1e-4};
    const MadeUpOp op("aten::_foreach_mul", {a.view(), b.view(), factor.view()}, {zero.returned(), one.returned()});
    EXPECT_TRUE(flushed_share(op.event(), 0, CpuScanner(), Lineage()));
    EXPECT_FALSE(flushed_share(op.event(), 1, CpuScanner(), Lineage()));
}

TEST(FlushedShare, HardlyABitIsLeft) {
    const std::vector<double> few(8, 3 * 5.96e-8);
    MadeUpHalf a(std::vector<double>(8, 1e-3)), b(std::vector<double>(8, 1.8e-4)), product(few);
    EXPECT_EQ(flushed("aten::mul", {a.view(), b.view()}, product),
              "8 of 8 results of mul that are not zero are subnormal: the largest, 1.79e-07, has 2 of the 11 bits of "
              "float16");
    MadeUpHalf mixed(few);
    mixed.bits[0] = static_cast<uint16_t>(encoded(1e-3, DType::Float16));
    EXPECT_FALSE(flushed("aten::mul", {a.view(), b.view()}, mixed)) << "some are as they should be";
    MadeUpHalf tiny(few);
    EXPECT_FALSE(flushed("aten::mul", {tiny.view(), b.view()}, product)) << "they were so before";
    EXPECT_FALSE(flushed("aten::mm", {a.view(), b.view()}, product)) << "terms may have cancelled";
}

/// Knows magnitudes of a device's tensor and not how many zeros it has.
class QuickOnly : public Scanner {
  public:
    const void* quick = nullptr;
    Range range(const TensorView& tensor) const noexcept override { return CpuScanner().range(tensor); }
    Health health(const TensorView& tensor) const noexcept override { return CpuScanner().health(tensor); }
    bool measures(const TensorView& tensor) const noexcept override { return tensor.storage != quick; }
};

TEST(FlushedShare, JudgesOnMeasuredReadingsOnly) {
    MadeUpHalf a{1e-4, 2e-4}, b{1e-5, 1e-5}, zero{0, 0};
    const MadeUpOp op("aten::mul", {a.view(), b.view()}, {zero.returned()});
    QuickOnly scanner;
    EXPECT_TRUE(flushed_share(op.event(), 0, scanner, Lineage()));
    for (const MadeUpTensor* tensor : {&a, &b, &zero}) {
        scanner.quick = tensor;
        EXPECT_FALSE(flushed_share(op.event(), 0, scanner, Lineage()));
    }
}

}  // namespace
}  // namespace numsan
