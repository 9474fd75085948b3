// A graph of several launches, some of which take turns: what its replays report, and what they leave behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

/// Each launch is over a tensor of its own.
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
