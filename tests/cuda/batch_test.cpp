// Tables of many tensors: every slot's words and every hit against the oracle, whatever the order of the blocks and
// however many run at once; the first offender, inputs, sequence numbers, replays.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

/// Tensors of all types and of sizes from one element to several chunks; one in four is bad.
struct Population {
    std::vector<std::unique_ptr<Lanes>> memory;
    std::vector<Shaped> tensors;

    Population(int count, uint64_t seed) {
        std::mt19937_64 random(seed);
        const std::vector<DType> types = all_types();
        for (int i = 0; i < count; ++i) {
            const DType dtype = types[random() % types.size()];
            const DTypeInfo& t = info(dtype);
            const int64_t bytes = random() % 8 == 0 ? 20000 + int64_t(random() % 30000) : 16 + int64_t(random() % 300);
            const int64_t n = bytes / t.element_bytes(), offset = int64_t(random() % 5);
            memory.push_back(std::make_unique<Lanes>(dtype, (n + offset) * t.lanes));
            Lanes& lanes = *memory.back();
            for (int64_t lane = 0; lane < lanes.count(); ++lane) lanes.set(lane, finite(t, random));
            if (random() % 4 == 0) {
                lanes.set((offset + int64_t(random() % uint64_t(n))) * t.lanes, nan_of(t));
            }
            const void* data = lanes.data() + offset * t.element_bytes();
            if (random() % 3 == 0 && n >= 12) {
                tensors.emplace_back(data, dtype, std::vector<int64_t>{n / 4, 3}, std::vector<int64_t>{4, 1});
            } else {
                tensors.emplace_back(data, dtype, n);
            }
        }
    }
};

struct Launch {
    Words words;
    BatchFiller filler;
    HitReader reader{words.ring(), words.capacity()};
    explicit Launch(const Population& population, bool in_graph = false) {
        ScanHeader header = words.header();
        if (in_graph) words.put_into_graph(header);
        filler.begin(header);
        for (uint32_t i = 0; i < population.tensors.size(); ++i) {
            EXPECT_EQ(filler.add(population.tensors[i].view, i, 2 * i + 1), Admission::Added);
        }
        EXPECT_TRUE(filler.close());
    }

    // Everything the launch left behind.
    void expect(const Population& population, uint32_t base) {
        EXPECT_TRUE(words.at_rest());
        std::map<uint32_t, HitSlot> hits;
        for (const HitSlot& hit : words.take(reader)) {
            EXPECT_TRUE(hits.emplace(hit.slot, hit).second) << "two hits of slot " << hit.slot;
        }
        uint64_t first = kNoOffender;
        for (uint32_t i = 0; i < population.tensors.size(); ++i) {
            const auto hit = hits.find(i);
            const bool bad = hit != hits.end();
            EXPECT_EQ(difference(words.results[i], bad ? &hit->second : nullptr, population.tensors[i].view), "") << i;
            EXPECT_EQ(words.results[i].sequence_plus_one, base + 2 * i + 2);
            if (bad) {
                EXPECT_EQ(hit->second.sequence, base + 2 * i + 1);
                first = std::min(first, uint64_t(base + 2 * i + 1) << 32 | i);
            }
        }
        if (base == 0) {
            EXPECT_EQ(words.state.first_offender, first);
            EXPECT_EQ(reader.first_offender(), first);
        }
        EXPECT_EQ(reader.dropped(), 0u);
    }
};

TEST(Batch, EveryTensorOfASmallTable) {
    for (uint32_t seed = 1; seed < 12; ++seed) {
        const Population population(1 + int(seed) * 4, seed);
        Launch launch(population);
        if (launch.filler.fits_small()) {
            run_grid(launch.filler.small(), Grid{1 + seed * seed, 1, seed});
            launch.expect(population, 0);
        } else {
            ADD_FAILURE() << "meant to fit";
        }
    }
}

TEST(Batch, EveryTensorOfALargeTable) {
    const Population population(400, 77);
    for (const uint32_t blocks : {1u, 13u, 528u}) {
        Launch launch(population);
        EXPECT_FALSE(launch.filler.fits_small());
        run_grid(launch.filler.large(), Grid{blocks, 1, blocks});
        launch.expect(population, 0);
    }
}

TEST(Batch, BlocksInSeveralThreads) {
    const Population population(120, 5);
    for (uint32_t round = 1; round < 6; ++round) {
        Launch launch(population);
        run(launch.filler, Grid{40 * round, 4, round});
        launch.expect(population, 0);
    }
}

TEST(Batch, ReplaysStartCleanAndCountOn) {
    const Population population(30, 9);
    Launch launch(population, true);
    for (uint32_t replay = 1; replay < 5; ++replay) {
        run(launch.filler, Grid{17, replay % 2 ? 3 : 1, replay});
        EXPECT_EQ(launch.words.sequence, replay);
        EXPECT_EQ(launch.words.replays.done, replay);
        launch.expect(population, replay);
    }
}

TEST(Batch, AReplaySeesOnlyWhatIsThereNow) {
    Lanes lanes(DType::Float32, 50000);
    lanes.fill(one(info(DType::Float32)));
    Words words;
    HitReader reader(words.ring(), words.capacity());
    BatchFiller filler;
    filler.begin(words.header());
    ASSERT_EQ(filler.add(Shaped(lanes.data(), DType::Float32, lanes.count()).view, 0, 0), Admission::Added);
    ASSERT_TRUE(filler.close());
    for (const bool bad : {true, false, true, false}) {
        lanes.set(12345, bad ? nan_of(info(DType::Float32)) : 1);
        run(filler, Grid{9, 1, 4});
        EXPECT_EQ(words.results[0].bad, bad);
        EXPECT_EQ(words.results[0].largest, bad ? 0x7fffffffu : 0x3f800000u);
        EXPECT_EQ(words.results[0].smallest_nonzero, bad ? 0x3f800000u : 1u);
        EXPECT_EQ(words.take(reader).size(), bad ? 1u : 0u);
    }
}

TEST(Batch, WhatWasDroppedIsNotTouched) {
    constexpr uint32_t kCount = 9;
    Words words;
    HitReader reader(words.ring(), words.capacity());
    BatchFiller filler;
    filler.begin(words.header());
    std::vector<std::unique_ptr<Lanes>> memory;
    for (uint32_t i = 0; i < kCount; ++i) {
        memory.push_back(std::make_unique<Lanes>(DType::Float32, 3000 + i));
        memory.back()->fill(0x7fc00000);
        EXPECT_EQ(filler.add(Shaped(memory.back()->data(), DType::Float32, 3000 + i).view, i, i), Admission::Added);
    }
    for (const uint32_t gone : {0u, 1u, 4u, kCount - 1}) {
        filler.drop(static_cast<int>(gone));
        memory[gone].reset();
    }
    ASSERT_TRUE(filler.close());
    run(filler, Grid{5, 2, 11});
    std::map<uint32_t, int64_t> found;
    for (const HitSlot& hit : words.take(reader)) found[hit.slot] = hit.nan;
    EXPECT_EQ(found, (std::map<uint32_t, int64_t>{{2, 3002}, {3, 3003}, {5, 3005}, {6, 3006}, {7, 3007}}));
    EXPECT_TRUE(words.at_rest());
    for (int i = 0; i < int(kCount); ++i) filler.drop(i);
    EXPECT_FALSE(filler.close());
}

TEST(Batch, InputsOfABadOutputFollowIt) {
    const Population population(8, 3);
    Lanes bad(DType::Float16, 30000), good(DType::Float16, 30000);
    bad.set(29999, 0x7c00);
    Words words;
    HitReader reader(words.ring(), words.capacity());
    BatchFiller filler;
    filler.begin(words.header());
    std::vector<TensorView> views;
    for (const Shaped& t : population.tensors) views.push_back(t.view);
    const InputItems inputs = filler.add_inputs(views.data(), 8);
    EXPECT_EQ(inputs.count, 8);
    TensorView returned = Shaped(good.data(), DType::Float16, 30000).view;
    const Shaped clean(good.data(), DType::Float16, 30000);
    Shaped dirty(bad.data(), DType::Float16, 30000);
    dirty.view.argument = 1;
    returned = clean.view;
    ASSERT_EQ(filler.add(returned, 4, 10, 0, inputs), Admission::Added);
    ASSERT_EQ(filler.add(dirty.view, 5, 11, 0, inputs), Admission::Added);
    ASSERT_TRUE(filler.close());
    ASSERT_TRUE(filler.fits_small());
    for (const bool small : {true, false}) {
        if (small) {
            run_grid(filler.small(), Grid{3, 1, 0});
        } else {
            run_grid(filler.large(), Grid{3, 1, 0});
        }
        const std::vector<HitSlot> hits = words.take(reader);
        ASSERT_EQ(hits.size(), 9u);
        EXPECT_EQ(hits[0].role, HitRole::Output);
        EXPECT_EQ(hits[0].inputs, 8u);
        EXPECT_EQ(hits[0].argument, 1);
        EXPECT_EQ(difference(to_health(hits[0]), reference_scan(dirty.view).health), "");
        for (uint32_t i = 0; i < 8; ++i) {
            const HitSlot& hit = hits[i + 1];
            EXPECT_EQ(hit.role, HitRole::Input);
            EXPECT_EQ(hit.argument, i);
            EXPECT_EQ(hit.sequence, 11u);
            EXPECT_EQ(hit.slot, 5u);
            EXPECT_EQ(difference(to_health(hit), reference_scan(views[i]).health), "");
        }
    }
}

}  // namespace
}  // namespace numsan::gpu
