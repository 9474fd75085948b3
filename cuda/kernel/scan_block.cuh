// What the threads of a block share, and their merge. A block of one thread has nothing to merge.
#pragma once

#include <cstdint>

#include "cuda/kernel/bits.cuh"
#include "cuda/kernel/scan_table.h"
#include "cuda/kernel/target.cuh"

#if defined(__CUDACC__)
#include <cub/block/block_reduce.cuh>
#endif

namespace numsan::gpu {

/// The table as a block sees it, whatever its capacity.
struct TableView {
    const ScanHeader& header;
    const ScanItem* items;
    const ScanDim* dims;
};

/// A block's part of an output: the chunks number, number + (blocks of the grid), ... from the output's end.
struct Part {
    uint32_t index;   ///< of the output
    uint32_t number;  ///< below `parts`
    uint32_t own;     ///< chunks in this part
    uint32_t parts;   ///< of the output
    uint32_t chunks;  ///< of the output
};

/// Which parts of which tensor the exact pass takes next: `first`, first + step, ... below `last`. Part p has the
/// chunks p, p + parts, ... from the tensor's end.
struct TallyJob {
    uint32_t item;  ///< in the table; kNoJob: nothing
    uint32_t first, last, step;
    uint32_t parts;
    uint32_t chunks;
    bool rest;  ///< leave out the parts in BlockShared::tallied
};
inline constexpr uint32_t kNoJob = ~0u;

struct BlockShared {
#if defined(__CUDACC__)
    using Reduce = cub::BlockReduce<RangeWords, int(kBlockThreads), cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    typename Reduce::TempStorage reduce;
#endif
    // Thread 0's, but for the job and the tally: it keeps here what would take registers from all.
    Part part;
    RangeWords words;  ///< of the part; of the tensor while that is reported
    uint32_t base;     ///< what the launch adds to the order of its items
    TallyJob job;
    TallyWords tally;
    uint32_t tallied[kMaxBlocks / 32];  ///< parts of the bad tensor that other blocks have tallied
    uint64_t ticket;                    ///< of the next slot in the ring
    uint64_t looked;                    ///< outputs that the block still has to look at
    uint32_t sequence;
    uint32_t inputs_left;
};

/// Valid in thread 0. The caller puts a barrier before the next call.
NUMSAN_DEVICE RangeWords merge_block(const RangeWords& words, BlockShared& shared) {
#if defined(__CUDACC__)
    return BlockShared::Reduce(shared.reduce).Reduce(words, MergeRange{});
#else
    return words;
#endif
}

}  // namespace numsan::gpu
