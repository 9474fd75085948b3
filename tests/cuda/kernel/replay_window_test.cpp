// Which launches of a graph look in a replay, by a clock of the tests' own.
#include "cuda/kernel/replay_window.cuh"

#include <gtest/gtest.h>

#include <set>

namespace numsan::gpu {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

/// A window as the device keeps it, by a clock of the test's own.
class Window : public testing::Test {
  protected:
    static constexpr uint32_t kLaunches = 10;

    Window() {
        header.window = &window;
        header.replays = &words;
        header.capture = 3;
        header.replay_share = 65'536 / 10;
        words.launches = kLaunches;
    }
    /// Those that look in a replay, each for `cost` nanoseconds; the next one begins a millisecond later.
    std::set<uint32_t> replay(uint64_t cost) {
        std::set<uint32_t> looked;
        for (uint32_t number = 0; number < kLaunches; ++number) {
            header.launch_number = number;
            header.flags = number == governing ? uint32_t(kGoverns) : uint32_t(kTakesTurns);
            govern(header);
            if (has_turn(header)) {
                looked.insert(number);
                if (takes_turns(header)) charge(window, cost);
            }
            if (number != 0) continue;
            begin_replay(header, now);
            govern(header);
        }
        now += kMillisecond;
        return looked;
    }
    std::set<uint32_t> replays(int count, uint64_t cost, int64_t& spent) {
        std::set<uint32_t> looked;
        for (int i = 0; i < count; ++i) {
            const std::set<uint32_t> now_looked = replay(cost);
            spent += static_cast<int64_t>((now_looked.size() - now_looked.count(governing)) * cost);
            looked.insert(now_looked.begin(), now_looked.end());
        }
        return looked;
    }

    ReplayWindow window{};
    ReplayWords words{};
    ScanHeader header{};
    uint64_t now = 5 * kMillisecond;
    uint32_t governing = 4;
};

TEST_F(Window, AGraphThatHasNothingThatGovernsLooksEachTime) {
    governing = kLaunches;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(replay(kMillisecond).size(), kLaunches);
}

TEST_F(Window, TheFirstReplayLooksInFull) {
    EXPECT_EQ(replay(kMillisecond / 10).size(), kLaunches);
    EXPECT_LT(replay(kMillisecond / 10).size(), 4u);
    EXPECT_EQ(replay(kMillisecond / 10), (std::set<uint32_t>{0, 1, governing})) << "nothing is owed for the first";
    EXPECT_EQ(replay(kMillisecond / 10), (std::set<uint32_t>{2, governing}));
}

TEST_F(Window, AllLookWhileItIsWarm) {
    header.replay_warmup = 5000;  // microseconds
    for (int i = 0; i < 5; ++i) EXPECT_EQ(replay(kMillisecond / 10).size(), kLaunches) << i;
    EXPECT_LT(replay(kMillisecond / 10).size(), kLaunches);
    EXPECT_GT(replay(kMillisecond / 10).size(), 1u) << "what that took is not owed";
}

TEST_F(Window, EachHasItsTurnAndTheShareIsKept) {
    for (const uint64_t cost : {kMillisecond / 1000, kMillisecond / 50, kMillisecond / 4}) {
        window = {};
        int64_t spent = 0;
        replays(200, cost, spent);  // the first one is paid off
        spent = 0;
        constexpr int kReplays = 2000;
        const std::set<uint32_t> looked = replays(kReplays, cost, spent);
        EXPECT_EQ(looked.size(), kLaunches) << cost;
        const double share = double(spent) / (kReplays * double(kMillisecond));
        if (cost == kMillisecond / 1000) {
            EXPECT_DOUBLE_EQ(share, (kLaunches - 1) * 0.001) << "there is time for all";
        } else {
            EXPECT_NEAR(share, 0.1, 0.002) << cost;
        }
    }
}

TEST_F(Window, WhatIsNotSpentIsNotSavedForLong) {
    int64_t spent = 0;
    replays(400, 1000, spent);
    now += 10'000 * kMillisecond;
    replay(kMillisecond / 10);
    spent = 0;
    replays(10, kMillisecond / 10, spent);
    EXPECT_LT(spent, int64_t(20 * kMillisecond));
    EXPECT_EQ(window.credit < 0, true) << "it is overdrawn as any other";
}

TEST_F(Window, WhatWasBadForTheFirstTimeOpensTheNextReplay) {
    int64_t spent = 0;
    replays(300, kMillisecond / 50, spent);
    ASSERT_LT(replay(kMillisecond / 50).size(), kLaunches);
    window.bad = 1;
    EXPECT_GE(replay(kMillisecond / 50).size(), kLaunches - 1) << "but for the first";
    for (int i = 0; i < 100; ++i) {
        window.bad = 1;
        EXPECT_LT(replay(kMillisecond / 50).size(), kLaunches - 1) << "it stays bad";
    }
    replay(kMillisecond / 50);
    window.bad = 1;
    EXPECT_GE(replay(kMillisecond / 50).size(), kLaunches - 1) << "it was good in between";
}

TEST_F(Window, ALaneThatIsAnotherCapturesBeginsAnew) {
    int64_t spent = 0;
    replays(300, kMillisecond / 4, spent);
    header.capture = 4;
    EXPECT_EQ(replay(kMillisecond / 4).size(), kLaunches);
    governing = kLaunches;
    header.capture = 5;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(replay(kMillisecond).size(), kLaunches);
}

TEST_F(Window, AClockThatWasSetBackEarnsNothing) {
    int64_t spent = 0;
    replays(100, kMillisecond / 50, spent);
    now -= 50 * kMillisecond;
    replay(kMillisecond / 50);
    EXPECT_LE(window.credit, int64_t(kMillisecond));
    EXPECT_LE(replays(100, kMillisecond / 50, spent).size(), kLaunches);
}

TEST_F(Window, TheFirstLaunchMayGovern) {
    governing = 0;
    EXPECT_EQ(replay(kMillisecond / 10).size(), kLaunches);
    EXPECT_EQ(replay(kMillisecond / 10), std::set<uint32_t>{0});
}

}  // namespace
}  // namespace numsan::gpu
