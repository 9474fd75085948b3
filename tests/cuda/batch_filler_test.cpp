// How tensors become items, and batches become chunks.
#include "cuda/batch_filler.h"

#include <gtest/gtest.h>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

alignas(64) unsigned char arena[4096];

struct Described {
    Admission admission;
    ScanItem item{};
    ScanDim dims[kMaxScanDims] = {};
    Described(const void* data, DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
        const Shaped tensor(data, dtype, sizes, strides);
        admission = describe(tensor.view, item, dims);
    }
};

TEST(Describe, RowMajorNeedsNoDimensions) {
    const Described d(arena, DType::Float32, {2, 1, 3, 4}, {12, 99, 4, 1});
    EXPECT_EQ(d.admission, Admission::Added);
    EXPECT_EQ(d.item.ndim, 0);
    EXPECT_EQ(d.item.flags, 0);
    EXPECT_EQ(d.item.positions, 24u);
    EXPECT_EQ(d.item.repeat, 1u);
}

TEST(Describe, PermutedStorageIsOneRunWithItsIndices) {
    const Described d(arena, DType::Float32, {2, 3, 4, 5}, {60, 1, 15, 3});  // channels last
    EXPECT_EQ(d.item.flags, 0);
    ASSERT_EQ(d.item.ndim, 3);
    EXPECT_EQ(d.dims[0].size, 3);
    EXPECT_EQ(d.dims[0].weight, 20);
    EXPECT_EQ(d.dims[1].size, 20);
    EXPECT_EQ(d.dims[1].weight, 1);
    EXPECT_EQ(d.dims[2].weight, 60);
}

TEST(Describe, ExpandedDimensionsRepeat) {
    const Described d(arena, DType::Float32, {7, 3, 2}, {0, 1, 0});
    EXPECT_EQ(d.item.positions, 3u);
    EXPECT_EQ(d.item.repeat, 14u);
    EXPECT_EQ(d.item.flags, 0);
    ASSERT_EQ(d.item.ndim, 1);
    EXPECT_EQ(d.dims[0].weight, 2);
}

TEST(Describe, RunsAreLoadedInTheLargestUnitThatNeverStraddlesAGap) {
    const auto unit = [](int64_t offset, int64_t columns, int64_t pitch) {
        return 1 << Described(arena + 2 * offset, DType::BFloat16, {4, columns}, {pitch, 1}).item.unit_log2;
    };
    EXPECT_EQ(unit(0, 16, 24), 16);
    EXPECT_EQ(unit(0, 16, 20), 8);
    EXPECT_EQ(unit(0, 18, 24), 4);
    EXPECT_EQ(unit(0, 17, 24), 2);
    EXPECT_EQ(unit(4, 16, 24), 8);
    EXPECT_EQ(unit(1, 16, 24), 2);
    const Described every_other(arena, DType::Complex64, {8}, {2});
    EXPECT_EQ(every_other.item.flags, kGaps);
    EXPECT_EQ(every_other.item.unit_log2, 3);
}

TEST(Describe, WhatItCannotDescribe) {
    EXPECT_EQ(Described(arena, DType::Float32, {3, 0}, {1, 1}).admission, Admission::Empty);
    EXPECT_EQ(Described(nullptr, DType::Float32, {0}, {1}).admission, Admission::Empty);
    EXPECT_EQ(Described(nullptr, DType::Float32, {1}, {1}).admission, Admission::Unsupported);
    EXPECT_EQ(Described(arena + 2, DType::Float32, {4}, {1}).admission, Admission::Unsupported);
    EXPECT_EQ(Described(arena + 16, DType::Float32, {4}, {-1}).admission, Admission::Unsupported);
    const std::vector<int64_t> eight(8, 2), eight_apart{1, 3, 7, 15, 31, 63, 127, 255};
    EXPECT_EQ(Described(arena, DType::Float32, eight, eight_apart).admission, Admission::Added);
    const std::vector<int64_t> nine(9, 2), nine_apart{1, 3, 7, 15, 31, 63, 127, 255, 511};
    EXPECT_EQ(Described(arena, DType::Float32, nine, nine_apart).admission, Admission::Unsupported);
}

TEST(BatchFiller, ChunksAreAPrefixSumOverTheOutputs) {
    BatchFiller filler;
    filler.begin(ScanHeader{});
    EXPECT_FALSE(filler.close());
    filler.begin(ScanHeader{});
    const int64_t elements[] = {1, 100000, 5, 2048, 2049};
    for (uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(filler.add(Shaped(arena, DType::Float32, elements[i]).view, i, i), Admission::Added);
    }
    ASSERT_TRUE(filler.close());
    const ScanTableLarge& table = filler.large();
    EXPECT_EQ(table.header.chunk_log2, kMinChunkLog2);
    const uint32_t first[] = {0, 1, 26, 27, 28};  // 16 KiB a chunk: 100000 x 4 bytes are 25, 2049 x 4 one
    for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(table.items[i].first_chunk, first[i]) << i;
    EXPECT_EQ(table.header.chunks, 29u);
    EXPECT_TRUE(filler.fits_small());
    EXPECT_EQ(filler.small().items[3].first_chunk, 27u);
}

TEST(BatchFiller, LargeBatchesHaveLargeChunks) {
    EXPECT_EQ(chunk_log2(0), kMinChunkLog2);
    EXPECT_EQ(chunk_log2(528 * 2048 - 1), kMinChunkLog2);
    EXPECT_EQ(chunk_log2(528 * 2048), kMinChunkLog2 + 1);
    EXPECT_EQ(chunk_log2(uint64_t(1) << 40), kMaxChunkLog2);
    EXPECT_EQ(grid_blocks(7, 132), 7u);
    EXPECT_EQ(grid_blocks(100000, 132), 528u);
}

/// The chunk size of a batch of these outputs: nobody reads them.
uint32_t chunk_log2_of(const std::vector<Shaped>& outputs) {
    BatchFiller filler;
    filler.begin(ScanHeader{});
    for (const Shaped& output : outputs) EXPECT_EQ(filler.add(output.view, 0, 0), Admission::Added);
    EXPECT_TRUE(filler.close());
    return filler.header().chunk_log2;
}

TEST(BatchFiller, AnOutputOfTheWholeGridHasChunksOfOneTrip) {
    constexpr int64_t kWhole = int64_t(kWholeGridPackets) * 4;
    const Shaped whole(arena, DType::Float32, kWhole), large(arena, DType::Float32, 50 * kWhole);
    const Shaped part(arena, DType::Float32, kWhole / 2), small(arena, DType::Float32, 4);
    EXPECT_EQ(chunk_log2_of({whole}), kMinChunkLog2);
    EXPECT_EQ(chunk_log2_of({small, large, small}), kMinChunkLog2);
    EXPECT_EQ(chunk_log2_of({part, part, part}), kMinChunkLog2);
    EXPECT_EQ(chunk_log2_of({part, part, part, part}), kMinChunkLog2 + 1);
    EXPECT_EQ(chunk_log2_of({large, part, part, part, part}), kMinChunkLog2 + 1);
}

TEST(BatchFiller, LoadsBetweenGapsHaveSmallerChunks) {
    const Shaped dense(arena, DType::Float32, 4 * 6000);
    const Shaped gaps(arena, DType::Float32, {5000}, {2}), more(arena, DType::Float32, {7000}, {2});
    EXPECT_EQ(chunk_log2_of({gaps}), kMinGapsChunkLog2);
    EXPECT_EQ(chunk_log2_of({dense, gaps}), kMinChunkLog2);
    EXPECT_EQ(chunk_log2_of({dense, more}), kMinGapsChunkLog2);
    EXPECT_EQ(chunk_log2_of({Shaped(arena, DType::Float32, {528 * 2048}, {2})}), kMinChunkLog2 + 1);
}

TEST(BatchFiller, FullItemsAndFullDimensionsAskForTheNextBatch) {
    BatchFiller filler;
    filler.begin(ScanHeader{});
    const Shaped flat(arena, DType::Float32, 8), strided(arena, DType::Float32, {2, 2, 2}, {64, 16, 2});
    for (int i = 0; i < ScanTableLarge::kItemCapacity; ++i) EXPECT_EQ(filler.add(flat.view, 0, 0), Admission::Added);
    EXPECT_EQ(filler.add(flat.view, 0, 0), Admission::Full);
    EXPECT_TRUE(filler.close());
    EXPECT_FALSE(filler.fits_small());

    filler.begin(ScanHeader{});
    for (int i = 0; i < ScanTableLarge::kDimCapacity / 3; ++i)
        EXPECT_EQ(filler.add(strided.view, 0, 0), Admission::Added);
    EXPECT_EQ(filler.add(strided.view, 0, 0), Admission::Full);
    EXPECT_EQ(filler.add(flat.view, 0, 0), Admission::Added);
}

TEST(BatchFiller, InputsLeaveRoomForTheirOutput) {
    BatchFiller filler;
    filler.begin(ScanHeader{});
    const Shaped flat(arena, DType::Float32, 8);
    std::vector<TensorView> views(300, flat.view);
    const InputItems first = filler.add_inputs(views.data(), 300), second = filler.add_inputs(views.data(), 300);
    EXPECT_EQ(first.count, 255);
    EXPECT_EQ(second.count, ScanTableLarge::kItemCapacity - 255 - 1);
    EXPECT_EQ(filler.add(flat.view, 0, 0, 0, second), Admission::Added);
    EXPECT_EQ(filler.add(flat.view, 0, 0, 0, second), Admission::Full);
}

}  // namespace
}  // namespace numsan::gpu
