// Which launches are timed, and what a launch of the kernels' source says of its time.
#include "cuda/launch_clock.h"

#include <gtest/gtest.h>

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
    std::vector<LaunchClock::Timed> take() {
        std::vector<LaunchClock::Timed> all;
        clock.take([&](const LaunchClock::Timed& timed) { all.push_back(timed); });
        return all;
    }

    std::vector<LaunchTime> times;
    LaunchClock clock;
    ScanHeader header{};
};

TEST_F(Clock, ALaunchThatIsOverIsTakenOnce) {
    ASSERT_TRUE(begin(4096));
    clock.launched(header, 1900);
    EXPECT_TRUE(take().empty()) << "it still runs";
    run(header, 5000, 8000);
    const std::vector<LaunchClock::Timed> taken = take();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken[0].bytes, 4096);
    EXPECT_EQ(taken[0].on_device, 3000);
    EXPECT_EQ(taken[0].on_host, 1900);
    EXPECT_TRUE(take().empty());
}

TEST_F(Clock, OneThatWasNotLaunchedIsPassedOver) {
    ASSERT_TRUE(begin(1));
    clock.give_up(header);
    ASSERT_TRUE(begin(2));
    run(header, 1, 2);
    const std::vector<LaunchClock::Timed> taken = take();
    ASSERT_EQ(taken.size(), 2u);
    EXPECT_EQ(taken[0].on_device, 0);
    EXPECT_EQ(taken[1].on_device, 1);
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
        EXPECT_GT(words.time.began, 0u);
        EXPECT_LE(words.time.began, words.time.ended);
        EXPECT_LE(before, words.time.ended);
        EXPECT_TRUE(words.at_rest());
    }
}

}  // namespace
}  // namespace numsan::gpu
