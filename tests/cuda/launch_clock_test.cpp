// Which launches are timed, and what a launch of the kernels' source says of its time.
#include "cuda/launch_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda/emulation.h"

namespace numsan::gpu {
namespace {

class Clock : public testing::Test {
  protected:
    Clock() : times(LaunchClock::kTimes) { clock.use(times.data(), times.data()); }

    bool begin(int64_t bytes) {
        header = ScanHeader{};
        return clock.begin(header, bytes);
    }
    /// As the device does it.
    static void run(const ScanHeader& header, uint64_t began, uint64_t ended) {
        header.time->began = began;
        header.time->ended = ended;
        header.time->number_plus_one = uint64_t(header.time_number) + 1;
    }
    /// Bytes and nanoseconds.
    std::vector<std::pair<int64_t, int64_t>> take() {
        std::vector<std::pair<int64_t, int64_t>> all;
        clock.take([&](int64_t bytes, int64_t nanoseconds) { all.emplace_back(bytes, nanoseconds); });
        return all;
    }

    std::vector<LaunchTime> times;
    LaunchClock clock;
    ScanHeader header{};
};

TEST_F(Clock, ALaunchThatIsOverIsTakenOnce) {
    ASSERT_TRUE(begin(4096));
    EXPECT_TRUE(take().empty()) << "it still runs";
    run(header, 5000, 8000);
    EXPECT_THAT(take(), testing::ElementsAre(std::pair(4096, 3000)));
    EXPECT_TRUE(take().empty());
}

TEST_F(Clock, OneThatWasNotLaunchedIsPassedOver) {
    ASSERT_TRUE(begin(1));
    clock.give_up(header);
    ASSERT_TRUE(begin(2));
    run(header, 1, 2);
    EXPECT_THAT(take(), testing::ElementsAre(std::pair(1, 0), std::pair(2, 1)));
}

TEST_F(Clock, NoMoreAreTimedThanAreTaken) {
    uint32_t timed = 0;
    for (int i = 0; i < 10'000; ++i) timed += begin(i);
    EXPECT_EQ(timed, LaunchClock::kTimes) << "the device answers none of them";
}

TEST_F(Clock, AfterTheFirstOnesOneInSomeIsTimed) {
    int timed = 0;
    for (int i = 0; i < 10'000; ++i) {
        if (!begin(i)) continue;
        ++timed;
        run(header, 10, 20);
        EXPECT_EQ(take().size(), 1u);
    }
    EXPECT_GT(timed, 10'000 / 20);
    EXPECT_LT(timed, 10'000 / 10);
}

TEST_F(Clock, ThreadsThatLaunchTakeDifferentPlaces) {
    constexpr int kThreads = 4, kEach = 4000;
    std::atomic<int> timed{0}, running{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < kEach; ++i) {
                ScanHeader mine{};
                if (!clock.begin(mine, 7)) continue;
                timed.fetch_add(1);
                mine.time->began = 100;
                mine.time->ended = 100 + mine.time_number;
                std::atomic_ref(mine.time->number_plus_one)
                    .store(uint64_t(mine.time_number) + 1, std::memory_order_release);
            }
            running.fetch_sub(1);
        });
    }
    std::vector<std::pair<int64_t, int64_t>> all;
    for (bool last = false; !last;) {
        last = running.load() == 0;
        for (const auto& one : take()) all.push_back(one);
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(static_cast<int>(all.size()), timed.load());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], std::pair(int64_t(7), static_cast<int64_t>(i)));
}

TEST(TimedLaunch, SaysWhenItRanAndLeavesItsWordsAtRest) {
    std::vector<float> values(100'000, 1.0f);
    for (const uint32_t number : {0u, 7u}) {
        Words words;
        BatchFiller filler;
        ScanHeader header = words.header();
        header.time = &words.time;
        header.time_number = number;
        filler.begin(header);
        TensorView view{};
        const int64_t size = static_cast<int64_t>(values.size()), stride = 1;
        view.data = values.data();
        view.sizes = &size;
        view.strides = &stride;
        view.ndim = 1;
        view.numel = size;
        view.dtype = DType::Float32;
        ASSERT_EQ(filler.add(view, 0, 0, 0, {}), Admission::Added);
        ASSERT_TRUE(filler.close());
        const uint64_t before = nanoseconds();
        run(filler, Grid{});
        EXPECT_EQ(words.time.number_plus_one, number + 1u);
        EXPECT_LE(before, words.time.began);
        EXPECT_LE(words.time.began, words.time.ended);
        EXPECT_LE(words.time.ended, nanoseconds());
        EXPECT_TRUE(words.at_rest());
    }
}

}  // namespace
}  // namespace numsan::gpu
