// Which launches of a graph look in which replay, and what that is told of.
#include "cuda/kernel/replay_window.cuh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

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

/// Launches of the kernels themselves, each over a tensor of its own.
class GraphOfScans : public testing::Test {
  protected:
    static constexpr uint32_t kLaunches = 6, kGoverning = 3, kBehindGate = 4;

    GraphOfScans() {
        for (uint32_t number = 0; number < kLaunches; ++number) {
            tensors.emplace_back(DType::Float32, 5000);
            ScanHeader header = words.header();
            header.results = nullptr;
            words.put_into_graph(header, number, kLaunches);
            header.flags = number == kGoverning ? uint32_t(kGoverns) : uint32_t(kTakesTurns);
            header.raise = &words.gate;
            if (number == kBehindGate) {
                header.gate = &words.gate;
                header.flags = kClearsGate;
            }
            fillers.push_back(std::make_unique<BatchFiller>());
            fillers.back()->begin(header);
            const Shaped shaped(tensors.back().data(), DType::Float32, 5000);
            EXPECT_EQ(fillers.back()->add(shaped.view, number, 0, number == kGoverning ? kRaisesGate : 0),
                      Admission::Added);
            EXPECT_TRUE(fillers.back()->close());
        }
    }
    void set_all(uint64_t bits) {
        for (Lanes& tensor : tensors) tensor.set(7, bits);
    }
    /// Slots of what a replay reports.
    std::vector<uint32_t> replay() {
        ++replays;
        for (uint32_t number = 0; number < kLaunches; ++number) {
            EXPECT_EQ(words.replays.done, replays - 1) << "before the last launch is over";
            run(*fillers[number], Grid{3, 2, replays});
            EXPECT_TRUE(words.at_rest()) << number;
        }
        EXPECT_EQ(words.replays.done, replays);
        EXPECT_EQ(words.sequence, replays);
        std::vector<uint32_t> slots;
        for (const HitSlot& hit : words.take(reader)) {
            EXPECT_EQ(hit.sequence, replays);
            slots.push_back(hit.slot);
        }
        return slots;
    }

    Words words;
    HitReader reader{words.ring(), words.capacity()};
    std::deque<Lanes> tensors;
    std::vector<std::unique_ptr<BatchFiller>> fillers;
    uint32_t replays = 0;
};

TEST_F(GraphOfScans, AfterTheFirstReplayOnlyWhatIsLookedAtEachTimeReports) {
    using testing::ElementsAre;
    set_all(0x7fc00000);
    EXPECT_THAT(replay(), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(replay(), ElementsAre(0, 1, 2, 3, 4, 5)) << "what is looked at each time was bad";
    EXPECT_THAT(replay(), ElementsAre(0, 3, 4))
        << "the first hears of it late; what governs, what its gate lets through";
    EXPECT_THAT(replay(), ElementsAre(3, 4)) << "a share of nothing";
    EXPECT_EQ(words.window.looked, 0u) << "neither is charged";
    set_all(0x3f800000);
    EXPECT_THAT(replay(), ElementsAre());
    tensors[1].set(9, 0x7f800000);
    EXPECT_THAT(replay(), ElementsAre()) << "it has no turn";
    tensors[kGoverning].set(9, 0x7f800000);
    EXPECT_THAT(replay(), ElementsAre(3));
    EXPECT_THAT(replay(), ElementsAre(1, 3)) << "alarmed";
    EXPECT_THAT(replay(), ElementsAre(3));
}

TEST_F(GraphOfScans, AShareOfMoreThanAllTimeOpensThemAll) {
    for (const auto& filler : fillers) filler->header().replay_share = 4 * 65'536;
    set_all(0x3f800000);
    replay();
    EXPECT_GT(words.window.spent, 0u);
    for (int i = 0; i < 10; ++i) replay();
    EXPECT_EQ(words.window.open, kLaunches);
    tensors[5].set(9, 0x7fc00000);
    EXPECT_THAT(replay(), testing::ElementsAre(5));
}

}  // namespace
}  // namespace numsan::gpu
