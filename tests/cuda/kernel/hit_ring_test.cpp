// The ring between the device and the host: order, room, what is dropped, and a reader that reads while blocks write.
#include "cuda/kernel/hit_ring.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

/// A batch of `count` bad tensors of one element, with `inputs` inputs each.
struct BadBatch {
    Lanes lanes{DType::Float32, 1};
    BatchFiller filler;
    BadBatch(Words& words, uint32_t count, int inputs = 0) {
        lanes.set(0, 0x7fc00000);
        ScanHeader header = words.header();
        header.sequence = &words.sequence;
        filler.begin(header);
        const Shaped tensor(lanes.data(), DType::Float32, 1);
        const std::vector<TensorView> views(size_t(inputs), tensor.view);
        const InputItems items = filler.add_inputs(views.data(), inputs);
        for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(filler.add(tensor.view, i, i, 0, items), Admission::Added);
        EXPECT_TRUE(filler.close());
    }
};

TEST(HitRing, AFullRingDropsAndCounts) {
    Words words(8);
    HitReader reader(words.ring(), 8);
    BadBatch batch(words, 11);
    run(batch.filler, Grid{1, 1, 0});
    EXPECT_EQ(reader.dropped(), 3u);
    EXPECT_EQ(words.state.dropped, 3u);
    const std::vector<HitSlot> hits = words.take(reader);
    ASSERT_EQ(hits.size(), 8u);
    for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(hits[i].slot, i);
    run(batch.filler, Grid{1, 1, 0});
    EXPECT_EQ(words.take(reader).size(), 8u);
    EXPECT_EQ(reader.dropped(), 6u);
    EXPECT_EQ(reader.first_offender(), 0u);
}

TEST(HitRing, WhatIsDroppedLeavesTheScratchAtRest) {
    Words words(8);
    HitReader reader(words.ring(), 8);
    BadBatch full(words, 8);
    run(full.filler, Grid{});
    Lanes lanes(DType::Float32, 20000);
    lanes.set(7, 0x7fc00000);
    lanes.set(19000, 0xff800000);
    const Shaped tensor(lanes.data(), DType::Float32, lanes.count());
    BatchFiller filler;
    filler.begin(words.header());
    ASSERT_EQ(filler.add(tensor.view, 0, 0), Admission::Added);
    ASSERT_TRUE(filler.close());
    run(filler, Grid{50, 1, 3});
    EXPECT_TRUE(words.at_rest());
    EXPECT_EQ(reader.dropped(), 1u);
    EXPECT_EQ(words.take(reader).size(), 8u);
    run(filler, Grid{50, 1, 4});
    const std::vector<HitSlot> hits = words.take(reader);
    ASSERT_EQ(hits.size(), 1u);
    EXPECT_EQ(difference(words.results[0], hits.data(), tensor.view), "");
}

TEST(HitRing, AnOutputAndItsInputsAreThereOrDroppedTogether) {
    Words words(8);
    HitReader reader(words.ring(), 8);
    BadBatch batch(words, 3, 2);
    run(batch.filler, Grid{1, 1, 0});
    const std::vector<HitSlot> hits = words.take(reader);
    ASSERT_EQ(hits.size(), 6u);
    EXPECT_EQ(hits[3].role, HitRole::Output);
    EXPECT_EQ(reader.dropped(), 3u);
}

TEST(HitRing, EveryHitOfManyLapsIsReadOnceWhileBlocksWrite) {
    Words words(64);
    HitReader reader(words.ring(), 64);
    constexpr uint32_t kTensors = 40, kLaunches = 50;
    BadBatch batch(words, kTensors);
    std::atomic<bool> done{false};
    std::set<uint32_t> seen;
    uint64_t read = 0;
    const auto drain = [&] {
        for (HitSlot hit; reader.next(hit); ++read) {
            EXPECT_EQ(hit.sequence % kTensors, hit.slot);
            EXPECT_EQ(hit.first_bad_bits, 0x7fc00000u);
            EXPECT_EQ(hit.nan, 1);
            EXPECT_TRUE(seen.insert(hit.sequence).second);
        }
    };
    std::thread host([&] {
        while (!done) {
            drain();
            std::this_thread::yield();
        }
        drain();
    });
    for (uint32_t i = 0; i < kLaunches; ++i, words.sequence += kTensors) run(batch.filler, Grid{kTensors, 3, i + 1});
    done = true;
    host.join();
    EXPECT_EQ(read + reader.dropped(), kTensors * kLaunches);
    EXPECT_GE(read, 64u);
    EXPECT_EQ(reader.first_offender(), 0u);
}

TEST(HitRing, TheBellTellsOfAnEarlierOffenderOnly) {
    Words words;
    HitReader reader(words.ring(), words.capacity());
    EXPECT_EQ(reader.first_offender(), kNoOffender);
    words.sequence = 700;
    BadBatch one(words, 1);
    run(one.filler, Grid{});
    EXPECT_EQ(reader.first_offender(), uint64_t(700) << 32);
    words.sequence = 500;
    BadBatch batch(words, 4);
    run(batch.filler, Grid{4, 1, 7});
    EXPECT_EQ(reader.first_offender(), uint64_t(500) << 32);
    words.sequence = 600;
    run(batch.filler, Grid{4, 1, 7});
    EXPECT_EQ(reader.first_offender(), uint64_t(500) << 32);
    words.sequence = 400;
    run(batch.filler, Grid{4, 1, 7});
    EXPECT_EQ(reader.first_offender(), uint64_t(400) << 32);
}

}  // namespace
}  // namespace numsan::gpu
