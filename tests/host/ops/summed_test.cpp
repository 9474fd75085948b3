// How many elements operators add up, by what they compute.
#include "host/ops/summed.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace numsan {
namespace {

struct Shape {
    std::vector<int64_t> sizes;
    TensorView view() const {
        TensorView made{};
        made.sizes = sizes.data();
        made.ndim = static_cast<int16_t>(sizes.size());
        made.numel = std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
        return made;
    }
};

int64_t summed_by(const char* op, const std::vector<Shape>& read, const Shape& written) {
    std::vector<TensorView> inputs;
    for (const Shape& one : read) inputs.push_back(one.view());
    const OpInfo info{op, "", OpClass::Other, false, 0};
    const TensorView output = written.view();
    OpEvent event{};
    event.op = &info;
    event.inputs = inputs.data();
    event.input_count = static_cast<int32_t>(inputs.size());
    return summed(event, output);
}

TEST(Summed, IsTheInnerDimensionOfAMatrixProduct) {
    EXPECT_EQ(summed_by("aten::mm", {{{32, 100}}, {{100, 5}}}, {{32, 5}}), 100);
    EXPECT_EQ(summed_by("aten::bmm", {{{4, 32, 7}}, {{4, 7, 5}}}, {{4, 32, 5}}), 7);
    EXPECT_EQ(summed_by("aten::addmm", {{{5}}, {{32, 100}}, {{100, 5}}}, {{32, 5}}), 100);
    EXPECT_EQ(summed_by("aten::dot", {{{9}}, {{9}}}, {{}}), 9);
}

TEST(Summed, IsAChannelOfTheWeightOfAConvolution) {
    EXPECT_EQ(summed_by("aten::convolution", {{{8, 3, 32, 32}}, {{64, 3, 5, 5}}, {{64}}}, {{8, 64, 28, 28}}), 75);
}

TEST(Summed, IsWhatAReductionOrALossIsTakenOf) {
    EXPECT_EQ(summed_by("aten::mean", {{{32, 10}}}, {{}}), 320);
    EXPECT_EQ(summed_by("aten::sum", {{{32, 10}}}, {{32}}), 10);
    EXPECT_EQ(summed_by("aten::mse_loss", {{{32, 10}}, {{32, 10}}}, {{}}), 320);
}

TEST(Summed, IsOneWhereNothingIsAddedUp) {
    EXPECT_EQ(summed_by("aten::embedding", {{{1000, 16}}, {{3}}}, {{3, 16}}), 1);
    EXPECT_EQ(summed_by("aten::amax", {{{32, 10}}}, {{}}), 1);
    EXPECT_EQ(summed_by("aten::relu", {{{32, 10}}}, {{32, 10}}), 1);
    EXPECT_EQ(summed_by("mine::pool", {{{32, 10}}}, {{32}}), 1);
}

}  // namespace
}  // namespace numsan
