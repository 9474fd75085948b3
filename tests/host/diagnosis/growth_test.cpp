// When growth is sure enough to be told, and how well the forecast fits.
#include "host/diagnosis/growth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "host/base/thresholds.h"

namespace numsan {
namespace {

constexpr double kFloat16 = 16, kFloat32 = 128;

struct Told {
    int64_t step = -1;  ///< -1: never
    Forecast forecast;
};

/// Shows log2 of a value, step by step, until a forecast is made or the value is beyond `end`.
Told watch(const std::function<double(int64_t)>& log2_at, double end, int64_t steps = 2000) {
    Growth growth;
    for (int64_t step = 0; step < steps && log2_at(step) < end; ++step) {
        if (!growth.add(step, log2_at(step))) continue;
        if (const auto made = growth.forecast(end)) return {step, *made};
    }
    return {};
}

TEST(Growth, BinadesAreLog2AtPowersOfTwoAndTheRangeEndsBehindTheLargestNumber) {
    EXPECT_EQ(binades(encode_magnitude(1, info(DType::Float32)), info(DType::Float32)), 0);
    EXPECT_EQ(binades(encode_magnitude(1024, info(DType::Float16)), info(DType::Float16)), 10);
    EXPECT_EQ(binades(encode_magnitude(3, info(DType::BFloat16)), info(DType::BFloat16)), 1.5);
    EXPECT_EQ(end_of_range(info(DType::Float16)), kFloat16);
    EXPECT_EQ(end_of_range(info(DType::Float32)), kFloat32);
    EXPECT_EQ(end_of_range(info(DType::Float64)), 1024);
}

TEST(Growth, SteadyGrowthIsToldWithTheStepsThatAreLeft) {
    for (const double rate : {0.5, 1.0, 2.5}) {
        const Told told = watch([&](int64_t step) { return rate * static_cast<double>(step); }, kFloat32);
        ASSERT_GE(told.step, 0) << rate;
        EXPECT_NEAR(static_cast<double>(told.step) + told.forecast.steps, kFloat32 / rate, 1) << rate;
        EXPECT_LE(told.forecast.least, told.forecast.steps + 1e-6);
        EXPECT_GE(told.forecast.most, told.forecast.steps - 1e-6);
        EXPECT_NEAR(told.forecast.rate, rate, 1e-3);
    }
}

TEST(Growth, NoiseWidensTheIntervalWhichHoldsTheEnd) {
    int told_of = 0, inside = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        std::normal_distribution<double> noise(0, 0.4);
        std::vector<double> values;
        for (int i = 0; i < 2000; ++i) values.push_back(0.6 * i + noise(random));
        const Told told = watch([&](int64_t step) { return values[static_cast<size_t>(step)]; }, kFloat32);
        if (told.step < 0) continue;
        ++told_of;
        int64_t end = 0;
        while (values[static_cast<size_t>(end)] < kFloat32) ++end;
        const auto left = static_cast<double>(end - told.step);
        inside += told.forecast.least - 1 <= left && left <= told.forecast.most + 1 ? 1 : 0;
    }
    EXPECT_GE(told_of, 36);
    EXPECT_GE(inside, told_of * 3 / 4);
}

TEST(Growth, GrowthThatBeginsLateIsTold) {
    const Told told = watch(
        [](int64_t step) { return step < 1000 ? 1 - (step % 2) * 0.5 : 1 + 0.7 * double(step - 1000); }, kFloat32);
    ASSERT_GE(told.step, 1000);
    EXPECT_GE(told.forecast.steps, 50);
}

TEST(Growth, StepsCountFromTheLastThatWasAdded) {
    Growth growth;
    // Only windows of four steps grow without a break; one ends with step 99.
    const auto add = [&](int64_t step) { growth.add(step, 0.6 * double(step) - 2 * double(step % 2)); };
    for (int64_t step = 0; step < 100; ++step) add(step);
    const auto at_the_end = growth.forecast(kFloat32);
    add(100);
    add(101);
    const auto later = growth.forecast(kFloat32);
    ASSERT_TRUE(at_the_end && later);
    EXPECT_NEAR(later->steps, at_the_end->steps - 2, 1e-9);
    EXPECT_NEAR(later->most, at_the_end->most - 2, 1e-9);
}

TEST(Growth, GrowthThatSlowsDownIsNotTold) {
    // Linear and quadratic in time, levelling off, and away from a saddle: none of them goes on as it began.
    EXPECT_EQ(watch([](int64_t step) { return std::log2(0.01 + double(step)); }, kFloat16).step, -1);
    EXPECT_EQ(watch([](int64_t step) { return 2 * std::log2(1 + 0.2 * double(step)); }, kFloat16).step, -1);
    EXPECT_EQ(watch([](int64_t step) { return 12 * (1 - std::exp(-double(step) / 10)); }, kFloat16).step, -1);
    EXPECT_EQ(watch([](int64_t step) { return -20 + 24 / (1 + std::exp(-(double(step) - 40) / 5)); }, kFloat16).step,
              -1);
}

TEST(Growth, SmallValuesAndFarEndsAreNotTold) {
    EXPECT_EQ(watch([](int64_t step) { return std::min(-30 + 0.5 * double(step), 4.0); }, kFloat16).step, -1)
        << "below 1 nothing counts";
    EXPECT_EQ(watch([](int64_t step) { return 0.01 * double(step); }, kFloat16, 500).step, -1) << "too far ahead";
}

TEST(Growth, WhatComesFromBelowWhatIsWatchedIsToldAsIfItWasSeenFromTheStart) {
    const auto told = [](double lowest, double first) {
        Growth growth;
        for (int64_t step = 0; step < 200; ++step) {
            const double size = first + 0.8 * double(step);
            if (size >= lowest && growth.add(step, size) && growth.forecast(kFloat32)) return step;
        }
        return int64_t(-1);
    };
    const int64_t all = told(-100, 0);
    ASSERT_GT(all, 0);
    EXPECT_EQ(told(kWatchedRange * kFloat32, 0), all);
    // What is large in the first step has not come from below.
    EXPECT_EQ(told(kWatchedRange * kFloat32, 30), told(-100, 30));
    EXPECT_GT(30 + 0.8 * double(told(-100, 30)), 30 + kCoveredRange * (kFloat32 - 30));
}

TEST(Growth, AHoleEndsWhatWasSeenAtTheFinestScaleOnly) {
    Growth growth;
    bool grows = false;
    for (int64_t step = 0; step < 60; step += 2) grows = growth.add(step, double(step)) || grows;
    EXPECT_TRUE(grows) << "every fourth step has a value";
    EXPECT_TRUE(growth.forecast(100).has_value());
}

}  // namespace
}  // namespace numsan
