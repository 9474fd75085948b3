// Steps that are measured, and which elements of a tensor.
#include "host/diagnosis/gather/sampled_steps.h"

#include <gtest/gtest.h>

#include <set>

#include "host/diagnosis/gather/element_sample.h"

namespace numsan {
namespace {

TEST(SampledSteps, AreTheFirstAndPowersOfTwo) {
    std::vector<int64_t> sampled;
    for (int64_t step = 0; step < 100; ++step) {
        if (is_sampled(step)) sampled.push_back(step);
    }
    EXPECT_EQ(sampled, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64}));
    EXPECT_FALSE(is_sampled(-1));
    EXPECT_FALSE(is_sampled(INT64_MAX));
    int64_t last = -1;
    for (int sample = 0; sample < kMostSampled; ++sample) {
        const int64_t step = step_of_sample(sample);
        EXPECT_GT(step, last);
        EXPECT_TRUE(is_sampled(step));
        EXPECT_EQ(sample_of(step), sample);
        last = step;
    }
    EXPECT_FALSE(is_sampled(2 * last)) << "there is no room for its value";
}

TEST(ElementSample, HasAllOfFewAndOfManySomeOfEachColumn) {
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(sample_position(i, 7, 256), i);
    constexpr int64_t kRows = 4096, kColumns = 64;
    std::set<int64_t> columns, positions;
    for (int64_t i = 0; i < 256; ++i) {
        const int64_t at = sample_position(i, kRows * kColumns, 256);
        ASSERT_GE(at, 0);
        ASSERT_LT(at, kRows * kColumns);
        positions.insert(at);
        columns.insert(at % kColumns);
    }
    EXPECT_EQ(positions.size(), 256u);
    EXPECT_GT(columns.size(), 48u);
}

TEST(ElementSample, LeavesOutWhatIsNotFinite) {
    const float values[] = {3, INFINITY, 4, NAN};
    const int64_t size = 4, stride = 1;
    TensorView view{};
    view.data = values;
    view.numel = 4;
    view.sizes = &size;
    view.strides = &stride;
    view.ndim = 1;
    view.dtype = DType::Float32;
    view.flags = kScannable;
    ASSERT_TRUE(has_elements(view));
    EXPECT_DOUBLE_EQ(sampled_size(view, 16), std::sqrt(12.5));
    view.dtype = DType::Complex64;
    EXPECT_FALSE(has_elements(view));
}

}  // namespace
}  // namespace numsan
