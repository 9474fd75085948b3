// What operators make of operands in given ranges, also against the functions themselves.
#include "host/ops/effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "host/base/value_classes.h"

namespace numsan {
namespace {

/// An operand with these values.
Operand ranges(const std::vector<double>& values) {
    Operand operand;
    Health& health = operand.health;
    health.elements = health.finite = static_cast<int64_t>(values.size());
    health.min = INFINITY;
    health.max = -INFINITY;
    for (const double x : values) {
        health.zero += x == 0;
        health.min = std::min(health.min, x);
        health.max = std::max(health.max, x);
        health.absmax = std::max(health.absmax, std::fabs(x));
        if (x != 0) health.absmin = health.absmin == 0 ? std::fabs(x) : std::min(health.absmin, std::fabs(x));
    }
    return operand;
}

/// What an op must make of such operands.
KindSet must(const char* op, std::initializer_list<Operand> operands, std::initializer_list<double> scalars = {},
             DType dtype = DType::Float32) {
    return effect({traits_of(op), std::vector<Operand>(operands), std::vector<double>(scalars), dtype}).must;
}

TEST(EffectMust, FollowFromTheOperands) {
    EXPECT_EQ(must("aten::log", {ranges({1, -1})}), kNaN);
    EXPECT_EQ(must("aten::log_", {ranges({1, 0})}), kNegInf);
    EXPECT_EQ(must("aten::log10", {ranges({-1, 0})}), kNaN | kNegInf);
    EXPECT_EQ(must("aten::log1p", {ranges({-1, 3})}), kNegInf);
    EXPECT_EQ(must("aten::sqrt", {ranges({-1, 3})}), kNaN);
    EXPECT_EQ(must("aten::rsqrt", {ranges({0, 3})}), kPosInf);
    EXPECT_EQ(must("aten::acos", {ranges({-2})}), kNaN);
    EXPECT_EQ(must("aten::acosh", {ranges({0.5f})}), kNaN);
    EXPECT_EQ(must("aten::atanh", {ranges({1, 0})}), kPosInf);
    EXPECT_EQ(must("aten::div", {ranges({1, 2}), ranges({0, 2})}), kPosInf);
    EXPECT_EQ(must("aten::div", {ranges({0, 2}), ranges({0, 2})}), 0) << "which meet is not known";
    EXPECT_EQ(must("aten::div", {ranges({-1, 2})}, {0}), kAnyInf);
    EXPECT_EQ(must("aten::pow", {ranges({0, 2})}, {-1}), kPosInf);
    EXPECT_EQ(must("aten::pow", {ranges({-3, 2})}, {0.5}), kNaN);
    EXPECT_EQ(must("aten::exp", {ranges({12})}, {}, DType::Float16), kPosInf);
    EXPECT_EQ(must("aten::_to_copy", {ranges({70000})}, {}, DType::Float16), kPosInf);
    EXPECT_EQ(must("aten::_to_copy", {ranges({65519})}, {}, DType::Float16), 0) << "rounds to 65504";
    EXPECT_EQ(must("aten::_to_copy", {ranges({500, -500})}, {}, DType::Float8E4M3Fn), kNaN) << "it has no infinity";
    EXPECT_EQ(must("aten::_to_copy", {ranges({460})}, {}, DType::Float8E4M3Fn), 0) << "rounds to 448";
    EXPECT_EQ(must("aten::_to_copy", {ranges({-1e5f})}, {}, DType::Float8E5M2), kNegInf);
    EXPECT_EQ(must("aten::square", {ranges({1e20f})}), kPosInf);
}

TEST(EffectMust, AreNoneWhereTheOperandsAreInOrder) {
    for (const char* op : {"aten::log", "aten::sqrt", "aten::rsqrt", "aten::reciprocal", "aten::exp", "aten::square",
                           "aten::_to_copy", "aten::mul", "aten::acosh"}) {
        EXPECT_EQ(must(op, {ranges({1, 2})}), 0) << op;
    }
    EXPECT_EQ(must("aten::div", {ranges({0, 2}), ranges({1, 2})}), 0);
    EXPECT_EQ(must("aten::div", {ranges({0, 2})}, {3}), 0);
    EXPECT_EQ(must("aten::pow", {ranges({-3, 2})}, {2}), 0);
    EXPECT_EQ(must("aten::exp", {ranges({12})}), 0);
    EXPECT_EQ(must("aten::log", {}), 0);
}

/// An operator of one or two operands, as the C library computes it.
struct Function {
    const char* op;
    std::function<double(double, double)> of;
    int operands = 1;
};

const std::vector<Function>& functions() {
    static const std::vector<Function> all{
        {"log", [](double x, double) { return std::log(x); }},
        {"log2", [](double x, double) { return std::log2(x); }},
        {"log1p", [](double x, double) { return std::log1p(x); }},
        {"sqrt", [](double x, double) { return std::sqrt(x); }},
        {"rsqrt", [](double x, double) { return 1 / std::sqrt(std::fabs(x) == 0 ? 0.0 : x); }},
        {"reciprocal", [](double x, double) { return 1 / std::fabs(x); }},
        {"asin", [](double x, double) { return std::asin(x); }},
        {"acosh", [](double x, double) { return std::acosh(x); }},
        {"atanh", [](double x, double) { return std::atanh(x); }},
        {"exp", [](double x, double) { return std::exp(x); }},
        {"exp2", [](double x, double) { return std::exp2(x); }},
        {"expm1", [](double x, double) { return std::expm1(x); }},
        {"square", [](double x, double) { return x * x; }},
        {"neg", [](double x, double) { return -x; }},
        {"abs", [](double x, double) { return std::fabs(x); }},
        {"relu", [](double x, double) { return std::max(x, 0.0); }},
        {"add", [](double x, double y) { return x + y; }, 2},
        {"sub", [](double x, double y) { return x - y; }, 2},
        {"mul", [](double x, double y) { return x * y; }, 2},
        {"div", [](double x, double y) { return x / y; }, 2},
        {"pow", [](double x, double y) { return std::pow(x, y); }, 2},
    };
    return all;
}

/// Values in which zeros, ones, signs and small numbers are frequent.
std::vector<double> some_values(std::mt19937& random) {
    static constexpr double kEdges[] = {0, 1, -1, 0.5, -0.5, 2, 1100, 1e-8, 3};
    std::uniform_int_distribution<size_t> edge(0, std::size(kEdges) - 1);
    std::uniform_int_distribution<int> count(1, 4);
    std::uniform_real_distribution<double> other(-4, 4);
    const bool positive = random() % 2 == 0;
    std::vector<double> values;
    for (int i = count(random); i > 0; --i) {
        const double value = random() % 2 == 0 ? kEdges[edge(random)] : other(random);
        values.push_back(positive ? std::fabs(value) : value);
    }
    return values;
}

KindSet kind_of(double value) {
    if (std::isnan(value)) return kNaN;
    if (!std::isinf(value)) return 0;
    return value > 0 ? kPosInf : kNegInf;
}

TEST(Effect, HoldsOfTheFunctionsThemselves) {
    std::mt19937 random(7);
    for (const Function& function : functions()) {
        int said = 0, bounded = 0;
        for (int round = 0; round < 2000; ++round) {
            const std::vector<double> xs = some_values(random);
            std::vector<double> ys{0};
            std::vector<Operand> operands{ranges(xs)};
            if (function.operands == 2) {
                ys = some_values(random);
                operands.push_back(ranges(ys));
            }
            const Effect made = effect({traits_of(function.op), operands, {}, DType::Float64});
            KindSet kinds = 0;
            double largest = 0;
            for (const double x : xs) {
                for (const double y : ys) {
                    const double result = function.of(x, y);
                    kinds = static_cast<KindSet>(kinds | kind_of(result));
                    if (std::isfinite(result)) largest = std::max(largest, std::fabs(result));
                }
            }
            // Of div only the divisor's zeros are known, not the sign of what they make.
            const bool sure = made.must == 0 || (kinds & made.must) != 0;
            EXPECT_TRUE(sure) << function.op << " must make " << int(made.must) << " and made " << int(kinds);
            EXPECT_EQ(kinds & ~made.may, 0) << function.op << " made " << int(kinds);
            if (made.bound && kinds == 0) {
                EXPECT_LE(largest, *made.bound * (1 + 1e-12)) << function.op;
            }
            said += made.must != 0;
            bounded += made.bound.has_value();
        }
        const OpTraits& traits = traits_of(function.op);
        const bool square = traits.form == Form::Square;  // none of these values is too large for it
        if (is_decided_by_ranges(traits) && !square && function.operands == 1) {
            EXPECT_GT(said, 20) << function.op;
        }
        if (!has_domain(traits)) {
            EXPECT_GT(bounded, 100) << function.op;
        }
    }
}

TEST(EffectBound, CountsTheProductsOfASum) {
    Operand rows = ranges({2, -3}), columns = ranges({5});
    const int64_t shape[] = {4, 7};
    rows.shape = columns.shape = shape;
    const auto bound = [](const char* op, std::vector<Operand> operands) {
        return effect({traits_of(op), operands, {}, DType::Float32, 1}).bound;
    };
    EXPECT_EQ(bound("mm", {rows, columns}), 3 * 5 * 7);
    EXPECT_EQ(bound("addmm", {ranges({10}), rows, columns}), 10 + 3 * 5 * 7);
    EXPECT_EQ(bound("baddbmm", {ranges({10}), rows, columns}), 10 + 3 * 5 * 7);
    Operand summed = ranges({2, -3});
    summed.health.elements = 100;
    EXPECT_EQ(bound("sum", {summed}), 300);
    EXPECT_EQ(bound("linalg_vector_norm", {summed}), 30);
    Operand weight = ranges({0.5});
    weight.health.elements = 8 * 3 * 3 * 3;
    const int64_t kernel[] = {8, 3, 3, 3};
    weight.shape = kernel;
    EXPECT_EQ(bound("convolution", {ranges({4}), weight, ranges({1})}), 4 * 0.5 * 27 + 1);
    EXPECT_EQ(bound("cudnn_convolution", {ranges({4}), weight}), 4 * 0.5 * 27);
}

TEST(EffectBound, TakesNumbersForOperands) {
    const std::vector<Operand> one{ranges({8})};
    const auto by = [&](const char* op, double number) {
        return effect({traits_of(op), one, std::vector<double>{number}, DType::Float32}).bound;
    };
    EXPECT_EQ(by("mul", -3), 24);
    EXPECT_EQ(by("div", 4), 2);
    EXPECT_EQ(by("div", 0), std::nullopt);
    EXPECT_EQ(by("pow", 2), 64);
    EXPECT_EQ(by("pow", -1), 0.125);
}

TEST(EffectBound, SaysNothingOfOperandsThatAreNotKnown) {
    Operand gone;
    gone.known = false;
    const std::vector<Operand> operands{gone, ranges({2})};
    EXPECT_EQ(effect({traits_of("mul"), operands, {}, DType::Float32}).bound, std::nullopt);
    EXPECT_EQ(effect({traits_of("mul"), operands, {}, DType::Float32}).must, 0);
    EXPECT_EQ(effect({traits_of("copy"), operands, {}, DType::Float32}).bound, 2) << "it writes over the first";
}

TEST(EffectMay, FollowsFromHowFastResultsGrow) {
    const auto may = [](const char* op, DType dtype) { return effect({traits_of(op), {}, {}, dtype}).may; };
    EXPECT_EQ(may("relu", DType::Float16), 0);
    EXPECT_EQ(may("add", DType::Float32), 0);
    EXPECT_EQ(may("add", DType::Float16), kAnyInf);
    EXPECT_EQ(may("exp", DType::Float64), kAnyInf);
    EXPECT_EQ(may("log", DType::Float32), kNaN | kAnyInf);
}

}  // namespace
}  // namespace numsan
