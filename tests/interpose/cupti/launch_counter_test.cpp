#include "interpose/cupti/launch_counter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

int64_t sum(const std::map<std::string, int64_t>& launches) {
    int64_t all = 0;
    for (const auto& [name, count] : launches) all += count;
    return all;
}

TEST(LaunchCounter, CountsByNameWhateverTheirAddress) {
    const auto counter = std::make_unique<LaunchCounter>();
    std::string first = "gemm", second = "gemm";
    counter->count(first.c_str());
    counter->count(second.c_str());
    first = "????";  // a name is the caller's only during the call
    counter->count("softmax");
    counter->count(nullptr);
    EXPECT_EQ(counter->launches(), (std::map<std::string, int64_t>{{"(unnamed)", 1}, {"gemm", 2}, {"softmax", 1}}));
    EXPECT_EQ(counter->total(), 4);
    counter->clear();
    EXPECT_EQ(counter->total(), 0);
    EXPECT_TRUE(counter->launches().empty());
}

TEST(LaunchCounter, KnowsNamesByTheirNumber) {
    const auto counter = std::make_unique<LaunchCounter>();
    const int gemm = counter->count("gemm"), softmax = counter->count("softmax");
    EXPECT_EQ(counter->count("gemm"), gemm);
    EXPECT_TRUE(counter->name(gemm) == "gemm" && counter->name(softmax) == "softmax");
    EXPECT_EQ(counter->name(-1) + counter->name(LaunchCounter::kSlots), "");
}

TEST(LaunchCounter, NoLaunchIsLostWhenNamesAreMany) {
    const auto counter = std::make_unique<LaunchCounter>();
    constexpr int kNames = 3 * LaunchCounter::kSlots;
    for (int i = 0; i < kNames; ++i) counter->count(("kernel" + std::to_string(i)).c_str());
    const auto launches = counter->launches();
    EXPECT_LE(launches.size(), LaunchCounter::kSlots + 1);
    EXPECT_GT(launches.size(), LaunchCounter::kSlots / 2);
    EXPECT_EQ(sum(launches), kNames);
    EXPECT_GE(launches.at("other kernels"), kNames - static_cast<int64_t>(LaunchCounter::kSlots));
}

TEST(LaunchCounter, LongNamesThatBeginAlikeKeepTheirCounts) {
    const auto counter = std::make_unique<LaunchCounter>();
    const std::string start(LaunchCounter::kNameBytes, 'x');
    counter->count((start + "a").c_str());
    counter->count((start + "b").c_str());
    const auto launches = counter->launches();
    ASSERT_EQ(launches.size(), 1u);
    EXPECT_EQ(launches.begin()->first.size(), LaunchCounter::kNameBytes - 1);
    EXPECT_EQ(launches.begin()->second, 2);
}

TEST(LaunchCounter, ThreadsMayCountAtOnceAndAskMeanwhile) {
    const auto counter = std::make_unique<LaunchCounter>();
    constexpr int kThreads = 4, kEach = 20000;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < kEach; ++i) counter->count(("kernel" + std::to_string(i % 100)).c_str());
        });
    }
    for (int i = 0; i < 100; ++i) EXPECT_LE(sum(counter->launches()), kThreads * kEach);
    for (std::thread& thread : threads) thread.join();
    const auto launches = counter->launches();
    ASSERT_EQ(launches.size(), 100u);
    for (const auto& [name, count] : launches) EXPECT_EQ(count, kThreads * kEach / 100) << name;
}

}  // namespace
}  // namespace numsan
