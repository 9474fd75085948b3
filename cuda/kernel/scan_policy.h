// The numbers that tune the scan kernels. Nothing else lives here.
#pragma once

#include <cstdint>

namespace numsan::gpu {

/// Threads of a block. Eight warps: enough to hide one barrier per tensor, few enough for six blocks on an SM.
inline constexpr uint32_t kBlockThreads = 256;

/// 16-byte loads that one thread has in flight.
inline constexpr uint32_t kUnroll = 4;

/// Blocks of the grid per SM. 4 x 256 threads x 64 bytes keep 64 KiB in flight on an SM; 33 B/ns of HBM a SM
/// times 600-800 ns of latency need 20-26 KiB.
inline constexpr uint32_t kBlocksPerSm = 4;

/// The same of a look: the exact pass needs more registers.
inline constexpr uint32_t kLookBlocksPerSm = 3;

/// No grid is larger: a tensor has a bit for each block that has a part of it.
inline constexpr uint32_t kMaxBlocks = 1024;

/// A batch is cut into about this many chunks when its size allows (132 SMs x kBlocksPerSm).
inline constexpr uint64_t kTargetChunks = 528;

/// Chunk sizes, as a power of two of 16-byte packets: 16 KiB to 64 KiB. In the smallest each thread has kUnroll loads,
/// all in flight together. With fewer it would execute as much: a part of a tensor costs some 320 instructions a
/// thread besides its loads.
inline constexpr uint32_t kMinChunkLog2 = 10;
inline constexpr uint32_t kMaxChunkLog2 = 12;
static_assert(1u << kMinChunkLog2 == kBlockThreads * kUnroll);

/// The smallest where most loads are of tensors with gaps: a thread does these one after the other, so more blocks
/// share them.
inline constexpr uint32_t kMinGapsChunkLog2 = 9;

/// An output from this many packets on is a part of every block's, however small its chunks are. It does not make them
/// larger: in the smallest ones neighbouring blocks read neighbouring memory at any time, as in a grid-stride loop,
/// and from the output's end to its start.
inline constexpr uint64_t kWholeGridPackets = kTargetChunks << kMinChunkLog2;

/// Outputs of one launch: what the table of 4 KB holds. The larger table, for batches with many inputs or dimensions,
/// costs eight times the copying.
inline constexpr int kBatchOutputs = 56;

/// An output in a storage from this size on is scanned at once, what is pending with it: a launch of its own then costs
/// less than reading it again from memory, which L2 still has of it. So is one with an input from this size on.
inline constexpr int64_t kDeferBelowBytes = 8 << 20;

/// A batch is launched when this much is held for it: what a program that drops its gradients at once has more at most.
inline constexpr int64_t kDeferredBytes = 16 << 20;

/// The exact pass of an output and its operands is one block's work up to this many bytes: at 4 bytes a nanosecond 34
/// milliseconds, of which the device's share allows few. A batch in which an output has more is followed by a look, of
/// a whole grid. By the model of tests/bench/model_bytes.py a limit of 8 MB adds 49 to 99 % to the launches of tier
/// full for GPT-2 of 124M, this one 5 to 8 %, and 5 to 34 % for all its models. What a block reads in a nanosecond is
/// an estimate: 256 loads of 16 bytes take about 0.7 microseconds, their lanes about as long.
inline constexpr int64_t kAloneBytes = 128 << 20;
/// The same of an output that is always looked at: healthy programs pay for it.
inline constexpr int64_t kAlwaysAloneBytes = 256 << 10;
inline constexpr uint64_t kBlockBytesPerNanosecond = 4;
inline constexpr uint64_t kGridBytesPerNanosecond = 400;  ///< an estimate, too: bound by arithmetic

/// What an exact pass takes however few bytes there are, in nanoseconds: estimates.
inline constexpr uint64_t kBlockPassNanoseconds = 2'000;
inline constexpr uint64_t kGridPassNanoseconds = 5'000;

/// Operands that the look after one scan has room for: eight of each output, as many as a hit of DeviceScanner has.
inline constexpr uint32_t kLookedInputs = 8 * kBatchOutputs;

/// Exact passes of one account may take one in so many nanoseconds; what they may owe is 100 milliseconds of passes.
/// Then bad outputs are reported without one, until the debt has shrunk. A context has four accounts: of NaN and of
/// infinity (ScanState::paid_until), of eager launches and of replays. What is always looked at is in none.
inline constexpr uint64_t kExactShare = 50;
inline constexpr uint64_t kMostOwed = kExactShare * 100'000'000;
/// What raises a gate and has no more bytes is in no account: a pass over it takes a few microseconds.
inline constexpr uint64_t kAlarmBytes = 4096;
/// No pass takes as long: who owes more has paid by a clock that was set back since.
inline constexpr uint64_t kLongestPass = 5'000'000'000;

/// Streams and captures of a context that have scratch of their own.
inline constexpr uint32_t kLanes = 512;

/// Those that captures leave to streams: a graph keeps its scratch until it can be launched no more, which may be the
/// program's life.
inline constexpr uint32_t kStreamLanes = 128;

/// Hits that the host may lag behind, a power of two.
inline constexpr uint32_t kRingCapacity = 4096;

/// Outputs whose results may wait for the host at the same time, a power of two. 512 KiB.
inline constexpr uint32_t kResults = 1 << 14;

/// The chunk size for outputs below kWholeGridPackets that are `packets` loads together. `gaps`: most loads of the
/// batch are of tensors with gaps.
constexpr uint32_t chunk_log2(uint64_t packets, bool gaps = false) {
    uint32_t log2 = gaps ? kMinGapsChunkLog2 : kMinChunkLog2;
    while (log2 < kMaxChunkLog2 && (packets >> (log2 + 1)) >= kTargetChunks) ++log2;
    return log2;
}

/// Blocks to launch for `chunks` chunks (0 when there is nothing to do).
constexpr uint32_t grid_blocks(uint32_t chunks, uint32_t multiprocessors, uint32_t blocks_per_sm = kBlocksPerSm) {
    const uint32_t wanted = multiprocessors * blocks_per_sm, full = wanted < kMaxBlocks ? wanted : kMaxBlocks;
    return chunks < full ? chunks : full;
}

}  // namespace numsan::gpu
