#include "interpose/cupti/launch_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

LoggedLaunch launch(uint32_t correlation) {
    LoggedLaunch made{};
    made.call = "cuLaunchKernel";
    made.name = 7;
    made.correlation_id = correlation;
    return made;
}

std::vector<uint32_t> correlations(const LaunchLog& log, const LaunchSpan& span) {
    std::vector<uint32_t> found;
    for (const LoggedLaunch& one : log.of(span)) found.push_back(one.correlation_id);
    return found;
}

TEST(LaunchLog, GivesBackWhatLiesInASpan) {
    const auto log = std::make_unique<LaunchLog>();
    log->add(launch(1));
    const uint64_t first = log->count();
    EXPECT_TRUE(log->since(first).empty());
    log->add(launch(2));
    log->add(launch(3));
    const LaunchSpan span = log->since(first);
    log->add(launch(4));
    EXPECT_EQ(correlations(*log, span), (std::vector<uint32_t>{2, 3}));
    const LoggedLaunch last = log->of(span).back();
    EXPECT_TRUE(last.name == 7 && std::string(last.call) == "cuLaunchKernel");
    EXPECT_EQ(last.number, 3u);
}

TEST(LaunchLog, WhatTheRingDoesNotReachIsNotKnownInPart) {
    const auto log = std::make_unique<LaunchLog>();
    log->add(launch(1));
    log->add(launch(2));
    const LaunchSpan span = log->since(0);
    for (uint32_t i = 0; i + 2 < LaunchLog::kSlots; ++i) log->add(launch(1000 + i));
    EXPECT_EQ(correlations(*log, span), (std::vector<uint32_t>{1, 2}));
    log->add(launch(3));
    EXPECT_TRUE(correlations(*log, span).empty());
}

TEST(LaunchLog, OfManyTheLastAreShown) {
    const auto log = std::make_unique<LaunchLog>();
    for (uint32_t i = 0; i < 100; ++i) log->add(launch(i));
    const std::vector<uint32_t> last = correlations(*log, log->since(0));
    ASSERT_EQ(last.size(), LaunchLog::kMostOfSpan);
    EXPECT_EQ(last.front(), 100 - LaunchLog::kMostOfSpan);
    EXPECT_EQ(last.back(), 99u);
}

/// The ring is written several times over; what is read of it is whole, and the reading thread's own.
TEST(LaunchLog, EachThreadHasItsOwn) {
    const auto log = std::make_unique<LaunchLog>();
    constexpr uint32_t kThreads = 4, kEach = 3 * LaunchLog::kSlots;
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(kThreads);
    for (uint32_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            uint64_t first = log->count();
            for (uint32_t i = 0; i < kEach; ++i) {
                LoggedLaunch one = launch(i);
                one.stream = t;
                one.grid[2] = i;
                log->add(one);
                if (i % 8 != 7) continue;
                for (const LoggedLaunch& read : log->of(log->since(first))) {
                    if (read.stream != t || read.correlation_id != read.grid[2] || read.grid[2] > i ||
                        read.grid[2] + 8 <= i)
                        wrong[t] = std::to_string(read.stream) + " " + std::to_string(read.grid[2]);
                }
                first = log->count();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(wrong[t], "") << t;
}

}  // namespace
}  // namespace numsan
