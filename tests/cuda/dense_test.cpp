// One run of memory: every pattern in every lane position, odd sizes, every alignment.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

class Dense : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, Dense, testing::ValuesIn(all_types()), type_name);

/// Types of 8 and 16 bits: all their patterns fit in a tensor.
class DenseExhaustive : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Narrow, DenseExhaustive, testing::ValuesIn(narrow_types()), type_name);

// A tensor of one pattern among ones: what is said of it must be the pattern's own class. Patterns of 16 bits meet
// one of the 16 places of two packets here, and every place of a packet in bits_test.cpp.
TEST_P(DenseExhaustive, EveryPatternInEveryLaneOfTwoPackets) {
    const DTypeInfo& t = info(GetParam());
    Lanes lanes(GetParam(), 32 / t.lane_bytes);
    const uint64_t patterns = uint64_t(1) << (8 * t.lane_bytes), step = t.lane_bytes == 2 ? 16 : 1;
    for (int64_t at = 0; at < lanes.count(); ++at) {
        for (uint64_t bits = t.lane_bytes == 2 ? uint64_t(at) : 0; bits < patterns; bits += step) {
            lanes.fill(one(t));
            lanes.set(at, bits);
            ASSERT_EQ(scan_and_compare(Shaped(lanes.data(), GetParam(), lanes.count() / t.lanes).view), "")
                << at << ' ' << std::hex << bits;
        }
    }
}

TEST_P(DenseExhaustive, AllPatternsOfOneTensor) {
    const DTypeInfo& t = info(GetParam());
    const int64_t patterns = int64_t(1) << (8 * t.lane_bytes);
    Lanes lanes(GetParam(), patterns);
    for (int64_t i = 0; i < patterns; ++i) lanes.set(i, uint64_t(i));
    EXPECT_EQ(scan_and_compare(Shaped(lanes.data(), GetParam(), patterns / t.lanes).view, Grid{7, 1, 3}), "");
}

TEST_P(Dense, EdgePatterns) {
    const DTypeInfo& t = info(GetParam());
    Lanes lanes(GetParam(), 64 / t.lane_bytes);
    for (const uint64_t bits : edges(t)) {
        for (int64_t at = 0; at < lanes.count(); ++at) {
            lanes.fill(at % 2 ? one(t) : 0);
            lanes.set(at, bits);
            ASSERT_EQ(scan_and_compare(Shaped(lanes.data(), GetParam(), lanes.count() / t.lanes).view), "")
                << at << ' ' << std::hex << bits;
        }
    }
}

TEST_P(Dense, EveryAlignmentAndSmallSizeBetweenNaNs) {
    const DTypeInfo& t = info(GetParam());
    std::mt19937_64 random(1);
    for (int64_t offset = 0; offset < 32 / t.lane_bytes; ++offset) {
        for (int64_t n = 1; n <= 80 / t.element_bytes() + 3; ++n) {
            Lanes lanes(GetParam(), offset + n * t.lanes + 32);
            lanes.fill(nan_of(t));
            for (int64_t i = 0; i < n * t.lanes; ++i) lanes.set(offset + i, finite(t, random));
            const Shaped tensor(lanes.data() + offset * t.lane_bytes, GetParam(), n);
            ASSERT_EQ(scan_and_compare(tensor.view), "") << offset << ' ' << n;
            lanes.set(offset + int64_t(random() % uint64_t(n * t.lanes)), edges(t)[random() % edges(t).size()]);
            ASSERT_EQ(scan_and_compare(tensor.view), "") << offset << ' ' << n;
        }
    }
}

TEST_P(Dense, RandomPatternsInManyChunks) {
    const DTypeInfo& t = info(GetParam());
    std::mt19937_64 random(2);
    constexpr int64_t kChunk = int64_t(16) << kMinChunkLog2;
    for (const int64_t bytes : {kChunk / 4, kChunk - 16, kChunk, kChunk + 16, 4 * kChunk, 8 * kChunk + 48, 300001L}) {
        const int64_t n = bytes / t.element_bytes(), offset = int64_t(random() % 16);
        Lanes lanes(GetParam(), offset + n * t.lanes);
        for (const bool bad : {false, true}) {
            for (int64_t i = 0; i < lanes.count(); ++i) lanes.set(i, finite(t, random));
            if (bad) {
                for (int i = 0; i < 5; ++i) {
                    lanes.set(offset + int64_t(random() % uint64_t(n * t.lanes)), edges(t)[random() % edges(t).size()]);
                }
            }
            const Shaped tensor(lanes.data() + offset * t.lane_bytes, GetParam(), n);
            for (const uint32_t blocks : {1u, 2u, 5u, 1000u}) {
                ASSERT_EQ(scan_and_compare(tensor.view, Grid{blocks, 1, blocks}), "") << bytes << ' ' << blocks;
            }
        }
    }
}

TEST_P(Dense, BadAtTheEdgesOfChunks) {
    const DTypeInfo& t = info(GetParam());
    const uint32_t chunk_log2 = kMinGapsChunkLog2;
    const int64_t chunk = int64_t(16) << chunk_log2, bytes = 4 * chunk + 64;
    std::mt19937_64 random(3);
    for (const int64_t offset : {0, 1, 3}) {
        const int64_t n = (bytes / t.lane_bytes - offset - 1) / t.lanes;
        Lanes lanes(GetParam(), offset + n * t.lanes);
        for (int64_t i = 0; i < lanes.count(); ++i) lanes.set(i, finite(t, random));
        const Shaped tensor(lanes.data() + offset * t.lane_bytes, GetParam(), n);
        const int64_t last = lanes.count() - 1;
        for (int64_t at :
             {offset, offset + 1, last, last - 1, chunk / t.lane_bytes - 1, chunk / t.lane_bytes,
              chunk / t.lane_bytes + 16 / t.lane_bytes, 2 * chunk / t.lane_bytes, 3 * chunk / t.lane_bytes + 1}) {
            lanes.set(at, nan_of(t));
            for (const uint32_t blocks : {2u, 3u, 50u}) {
                ASSERT_EQ(scan_and_compare(tensor.view, Grid{blocks, 1, blocks}, chunk_log2), "")
                    << offset << ' ' << at << ' ' << blocks;
            }
            lanes.set(at, finite(t, random));
        }
    }
}

// What remains for a thread after no trip or one: no load is left out, and none is of what follows.
TEST_P(Dense, RemaindersOfEveryNumberOfLoads) {
    const DTypeInfo& t = info(GetParam());
    std::mt19937_64 random(4);
    for (int64_t loads = 0; loads < 2 * int64_t(kUnroll); ++loads) {
        const int64_t bytes = 16 * (loads * kBlockThreads + 48);
        Lanes lanes(GetParam(), bytes / t.lane_bytes);
        for (int64_t i = 0; i < lanes.count(); ++i) lanes.set(i, finite(t, random));
        const Shaped tensor(lanes.data(), GetParam(), lanes.count() / t.lanes);
        ASSERT_EQ(scan_and_compare(tensor.view, Grid{}, kMaxChunkLog2), "") << loads;
        lanes.set(lanes.count() - 1, nan_of(t));
        ASSERT_EQ(scan_and_compare(tensor.view, Grid{}, kMaxChunkLog2), "") << loads;
    }
}

TEST_P(Dense, NothingButBad) {
    const DTypeInfo& t = info(GetParam());
    Lanes lanes(GetParam(), (int64_t(40) << kMinChunkLog2) / t.lane_bytes * t.lanes + t.lanes);
    lanes.fill(nan_of(t));
    for (const uint32_t blocks : {1u, 3u, 50u}) {
        EXPECT_EQ(
            scan_and_compare(Shaped(lanes.data(), GetParam(), lanes.count() / t.lanes).view, Grid{blocks, 1, blocks}),
            "");
    }
}

}  // namespace
}  // namespace numsan::gpu
