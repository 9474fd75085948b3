// What is said of operands that explain a result.
#include "host/cause/remarks.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TensorFact fact(std::initializer_list<float> values) {
    const MadeUp made(values);
    TensorFact operand;
    operand.health = CpuScanner().health(made.view());
    return operand;
}

using Remarks = std::vector<std::string>;

Remarks remarks(const char* op, Mechanism mechanism, KindSet kind, std::vector<TensorFact> operands,
                DType dtype = DType::Float32) {
    remark_on(operands, op, mechanism, kind, dtype);
    Remarks all;
    for (const TensorFact& operand : operands) all.push_back(operand.remark);
    return all;
}

TEST(Remarks, Domain) {
    EXPECT_EQ(remarks("aten::acos", Mechanism::DOM, kNaN, {fact({-2, 0.5f})}), Remarks{"outside the domain of acos"});
    EXPECT_EQ(remarks("aten::pow", Mechanism::DOM, kNaN, {fact({-3}), fact({0.5f})}),
              (Remarks{"outside the domain of pow", ""}));
}

TEST(Remarks, BeyondWhereAnExponentialOverflows) {
    EXPECT_EQ(remarks("aten::exp", Mechanism::OVF, kPosInf, {fact({-2054, 728})}),
              Remarks{"above 88.72, where exp leaves float32"});
    EXPECT_EQ(remarks("aten::exp2", Mechanism::OVF, kPosInf, {fact({200})}, DType::Float16),
              Remarks{"above 16, where exp2 leaves float16"});
}

TEST(Remarks, LargeForTheType) {
    EXPECT_EQ(remarks("aten::mul", Mechanism::OVF, kPosInf, {fact({-202}), fact({1e38f})}),
              (Remarks{"", "large for float32"}));
    EXPECT_EQ(remarks("aten::mm", Mechanism::HYPER, kPosInf, {fact({300}), fact({400})}, DType::Float16),
              (Remarks{"large for float16", "large for float16"}));
    EXPECT_EQ(remarks("aten::_to_copy", Mechanism::OVF, kPosInf, {fact({7e4f})}, DType::Float16),
              Remarks{"beyond the largest float16"});
}

TEST(Remarks, DivisorsNearZero) {
    EXPECT_EQ(remarks("aten::div", Mechanism::OVF, kPosInf, {fact({2}), fact({-1, 1e-39f, 3})}),
              (Remarks{"", "the smallest magnitude is 1e-39"}));
    EXPECT_EQ(remarks("aten::div", Mechanism::OVF, kPosInf, {fact({1e38f}), fact({1e-5f})}),
              (Remarks{"large for float32", ""}));
    EXPECT_TRUE(divisor_near_zero("aten::reciprocal", kPosInf, DType::Float32, {fact({1e-40f})}));
    EXPECT_FALSE(divisor_near_zero("aten::div", kPosInf, DType::Float32, {fact({2}), fact({0})})) << "it is zero";
    EXPECT_FALSE(divisor_near_zero("aten::div", kPosInf, DType::Float32, {fact({2}), fact({1e-20f})}));
    EXPECT_TRUE(divisor_near_zero("aten::div", kPosInf, DType::Float32, {fact({7e21f}), fact({7e-45f})}));
    EXPECT_FALSE(divisor_near_zero("aten::div", kPosInf, DType::Float32, {fact({7e21f}), fact({1e-19f})}));
    EXPECT_FALSE(divisor_near_zero("aten::mul", kPosInf, DType::Float32, {fact({2}), fact({1e-40f})}));
}

TEST(Remarks, TargetsThatALossIsNotDefinedFor) {
    const char* loss = "aten::binary_cross_entropy_with_logits";
    const Remarks wrong = {"", "outside 0 to 1, where the loss has no lower bound"};
    for (const float target : {255.0F, -1.0F}) {
        EXPECT_EQ(remarks(loss, Mechanism::HYPER, kPosInf, {fact({3}), fact({0, target})}), wrong) << target;
    }
    EXPECT_EQ(remarks(loss, Mechanism::HYPER, kPosInf, {fact({3}), fact({0, 1})}), (Remarks{"", ""}));
}

TEST(Remarks, TooFewElements) {
    EXPECT_EQ(remarks("aten::std", Mechanism::DIV0, kNaN, {fact({1})}), Remarks{"too few elements"});
    EXPECT_EQ(remarks("aten::div", Mechanism::DIV0, kNaN, {fact({1}), fact({0})}), (Remarks{"", ""}))
        << "zeros are counted";
}

TEST(Remarks, NotOfWhatIsNotFiniteOrWasNotRead) {
    TensorFact gone = fact({-1});
    gone.exact = false;
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(remarks("aten::log", Mechanism::DOM, kNaN, {gone}), Remarks{""});
    EXPECT_EQ(remarks("aten::mul", Mechanism::OVF, kPosInf, {fact({inf}), fact({})}), (Remarks{"", ""}));
}

}  // namespace
}  // namespace numsan
