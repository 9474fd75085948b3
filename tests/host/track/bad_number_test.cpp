// Which numbers that are not finite an op was given.
#include "host/track/bad_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

constexpr double kNanNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfNumber = std::numeric_limits<double>::infinity();

TEST(BadNumber, AmongThoseOfTheCall) {
    MadeUp x{1};
    const auto given = [&](std::vector<double> numbers, bool infinities) {
        const MadeUpOp op("aten::add_", {x.view()}, {x.written()}, OpClass::Other, std::move(numbers));
        return bad_number(op.event(), infinities);
    };
    EXPECT_TRUE(std::isnan(given({0.5, kNanNumber}, false).value()));
    EXPECT_EQ(given({kInfNumber}, true), kInfNumber);
    EXPECT_EQ(given({kInfNumber}, false), std::nullopt) << "programs write infinities on purpose";
    EXPECT_EQ(given({0.5}, true), std::nullopt);
    EXPECT_EQ(given({}, true), std::nullopt);
}

TEST(BadNumber, WrappedAsATensor) {
    MadeUp x{1};
    double number = kNanNumber;
    TensorView wrapped = x.view(kNumber);
    wrapped.data = &number;
    wrapped.dtype = DType::Float64;
    const auto given = [&](const TensorView& second) {
        return bad_number(MadeUpOp("aten::mul_", {x.view(), second}, {x.written()}).event(), false).has_value();
    };
    EXPECT_TRUE(given(wrapped));
    number = 2;
    EXPECT_FALSE(given(wrapped));
    number = kNanNumber;
    wrapped.flags &= ~uint32_t(kNumber);
    EXPECT_FALSE(given(wrapped)) << "a tensor has values of its own";
    wrapped.flags |= kNumber;
    wrapped.flags &= ~uint32_t(kScannable);
    EXPECT_FALSE(given(wrapped)) << "it cannot be read here";
}

TEST(BadNumber, IsSaid) {
    EXPECT_EQ(said_of_number("aten::add_", kNanNumber), "a number that `aten::add_` was given is nan");
    EXPECT_EQ(said_of_number("aten::add_", kInfNumber), "a number that `aten::add_` was given is inf");
    EXPECT_EQ(said_of_number("aten::add_", -kInfNumber), "a number that `aten::add_` was given is -inf");
}

}  // namespace
}  // namespace numsan
