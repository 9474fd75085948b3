// Values by their power of two.
#include "host/scan/exponent_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "host/base/value_classes.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TEST(ExponentPass, CountsEachValueOnce) {
    const MadeUp x{0, -0.0f, 1, -1.5f, 1.999f, 2, 0.25f, kNan, kInf, -kInf};
    const ExponentCounts counts = exponent_counts(x.view());
    EXPECT_EQ(counts.first, -2);
    EXPECT_EQ(counts.counts, (std::vector<int64_t>{1, 0, 3, 1}));
}

TEST(ExponentPass, NothingToCount) {
    EXPECT_TRUE(exponent_counts(MadeUp{}.view()).counts.empty());
    EXPECT_TRUE(exponent_counts(MadeUp{0, kNan}.view()).counts.empty());
    TensorView without_data = MadeUp{1}.view();
    without_data.data = nullptr;
    EXPECT_TRUE(exponent_counts(without_data).counts.empty());
}

TEST(ExponentPass, AgreesWithTheLogarithm) {
    std::mt19937 random(5);
    std::vector<float> values(4096);
    std::map<int, int64_t> expected;
    for (float& value : values) {
        value = std::ldexp(1 + static_cast<float>(random() % 1000) / 1001, static_cast<int>(random() % 270) - 148);
        if (value != 0 && std::isfinite(value)) ++expected[std::ilogb(value)];
    }
    const MadeUp x(values);
    const ExponentCounts found = exponent_counts(x.view());
    std::map<int, int64_t> shown;
    for (size_t i = 0; i < found.counts.size(); ++i) {
        if (found.counts[i] != 0) shown[found.first + static_cast<int>(i)] = found.counts[i];
    }
    EXPECT_EQ(shown, expected) << "subnormal numbers, too";
}

/// Every pattern of a type of 8 bits, against what the type says it is worth.
TEST(ExponentPass, EveryPatternOfSmallTypes) {
    for (const DType dtype : {DType::Float8E4M3Fn, DType::Float8E5M2, DType::Float8E4M3Fnuz, DType::Float8E8M0Fnu}) {
        std::vector<uint8_t> patterns(256);
        for (int i = 0; i < 256; ++i) patterns[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
        const DTypeInfo& type = info(dtype);
        const ValueClasses classes = value_classes(type);
        std::map<int, int64_t> expected;
        for (const uint8_t bits : patterns) {
            const uint64_t magnitude = bits & classes.magnitude_mask;
            const bool zero = type.has_zero() && magnitude == 0;
            if (!zero && magnitude < classes.smallest_nonfinite())
                ++expected[std::ilogb(decode_magnitude(magnitude, type))];
        }
        const int64_t size = 256;
        const int64_t stride = 1;
        TensorView view = MadeUp{1}.view();
        view.data = patterns.data();
        view.sizes = &size;
        view.strides = &stride;
        view.numel = size;
        view.dtype = dtype;
        const ExponentCounts found = exponent_counts(view);
        std::map<int, int64_t> shown;
        for (size_t i = 0; i < found.counts.size(); ++i) {
            if (found.counts[i] != 0) shown[found.first + static_cast<int>(i)] = found.counts[i];
        }
        EXPECT_EQ(shown, expected) << type.name;
    }
}

}  // namespace
}  // namespace numsan
