// What a launch of the scan kernels takes: a table of tensors, by value, and the words in memory that it works on.
//
// The fatbin (cuda/kernel/scan_fatbin.h) has four kernels, all with one parameter, the table:
//     numsan_scan_small, numsan_look_small (ScanTableSmall)   parameters below 4 KB, any driver
//     numsan_scan_large, numsan_look_large (ScanTableLarge)   parameters below 32 KB, driver 530 (CUDA 12.1) and later
// A scan does the quick pass over the outputs and, where header.looks is null, the exact pass over bad ones, their
// operands included. Else the next launch in its stream has to be the look with the same table, which does that with a
// grid of its own.
// Launch shape: grid_blocks(chunks, SMs of the device) blocks of kBlockThreads threads (scan_policy.h), no dynamic
// shared memory; `chunks` are header.chunks for a scan, header.look_chunks for a look, which has kLookBlocksPerSm.
// A batch without chunks is not launched. The kernels allocate nothing and wait for nothing, so a captured launch
// carries its own table; everything they leave behind is in the words below, which are at rest after each launch, or
// each look.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernel/hit_ring.h"
#include "cuda/kernel/scan_policy.h"
#include "host/base/dtype.h"

namespace numsan::gpu {

/// Dimensions of a tensor that is not row-major without gaps, after those of size 1 and stride 0 are gone and
/// neighbours that continue each other are one.
inline constexpr int kMaxScanDims = 8;

/// One dimension, in memory order (smallest stride first). 24 bytes.
struct ScanDim {
    int64_t size;
    int64_t stride;  ///< bytes, positive
    int64_t weight;  ///< how far one step moves the logical (row-major) index
};
static_assert(sizeof(ScanDim) == 24);

enum ScanItemFlag : uint8_t {
    kGaps = 1,        ///< not one run of memory: walk the dimensions, touch nothing between
    kRun = 2,         ///< with kGaps: the first dimension has no gaps of its own
    kRaisesGate = 4,  ///< a bad tensor sets ScanHeader::raise
    kExact = 8,       ///< what the exact pass finds is reported even if nothing is bad
};

/// One tensor. 48 bytes.
struct ScanItem {
    const void* data;      ///< lowest address, a multiple of the lane's size
    uint64_t positions;    ///< distinct elements in memory
    uint64_t repeat;       ///< logical elements that each of them stands for (dimensions of stride 0)
    uint32_t first_chunk;  ///< prefix sum over the outputs; unused for inputs
    uint32_t slot;         ///< the host's number of the output: comes back in hits, and says where its result goes
    uint32_t order;        ///< sequence number, relative to the word at ScanHeader::sequence
    uint16_t first_dim;    ///< in the table's dimensions
    uint16_t first_input;  ///< in the table's items
    uint8_t ndim;          ///< 0: row-major without gaps
    DType dtype;
    uint8_t flags;
    uint8_t unit_log2;  ///< with kGaps: bytes of one load, which never straddles a gap
    uint8_t inputs;     ///< items that are looked at only when this one is bad
    uint8_t argument;
    uint8_t unused[2];
};
static_assert(sizeof(ScanItem) == 48 && offsetof(ScanItem, first_chunk) == 24 && offsetof(ScanItem, first_dim) == 36);

/// Sums and extremes of the exact pass. Zero means nothing yet; extremes are kept so that larger is further out.
struct TallyWords {
    uint64_t nan;
    uint64_t pos_inf;
    uint64_t neg_inf;
    uint64_t subnormal;
    uint64_t zero;
    uint64_t largest;             ///< finite magnitude
    uint64_t smallest_inverted;   ///< ~(smallest finite non-zero magnitude - 1)
    uint64_t highest_ordered;     ///< finite signed magnitude, top bit flipped
    uint64_t lowest_inverted;     ///< ~(the same of the lowest)
    uint64_t first_bad_inverted;  ///< ~(logical index)
};
static_assert(sizeof(TallyWords) == 80);

/// What the blocks that share a tensor gather. Device memory, zero at rest: the last of them leaves it so. 256 bytes.
struct ItemScratch {
    uint64_t largest;
    uint64_t smallest_inverted;  ///< ~(smallest non-zero magnitude - 1)
    uint32_t chunks_done;
    uint32_t negative_zero;
    TallyWords tally;  ///< of the bad parts; `tallied` has their bits
    uint32_t tallied[kMaxBlocks / 32];
    // From a scan to its look, with `largest`, `smallest_inverted` and `negative_zero` of the whole tensor.
    uint32_t sequence;
    uint16_t look_input;  ///< the first of LookList::tally that is this tensor's
    uint16_t look_inputs;
    uint64_t unused[2];
};
static_assert(sizeof(ItemScratch) == 256);

/// The outputs that a scan leaves to its look. Device memory, zero at rest; launches that may overlap have their own.
struct LookList {
    uint64_t outputs;      ///< a bit for each of the table's
    uint32_t inputs;       ///< of `tally` that are taken; may be beyond its end
    uint32_t blocks_done;  ///< of the look
    TallyWords tally[kLookedInputs];
};
static_assert(sizeof(LookList) % 16 == 0 && kBatchOutputs <= 64);

/// What launches share that may run at the same time. Device memory; starts as kInitialScanState. The host may set
/// first_offender back to kNoOffender, in stream order, when it has dealt with one.
struct ScanState {
    uint64_t first_offender;  ///< least (sequence << 32 | slot) of all bad tensors
    uint64_t head;            ///< tickets of the ring that were given out
    uint64_t dropped;         ///< slots of bad outputs without room, and of replays without time for an exact pass
    uint64_t unused;
    /// Nanoseconds of the device's clock: when what exact passes took will have been earned. Of outputs with NaN, and
    /// of those whose largest magnitude is infinity: programs mask with it all the time.
    uint64_t paid_until[2];
    uint64_t unused2[2];
};
inline constexpr ScanState kInitialScanState{kNoOffender, 0, 0, 0, {}, {}};
static_assert(sizeof(ScanState) == 64);

/// Values of RangeResult::bad.
enum ResultVerdict : uint64_t {
    kFinite = 0,
    kHitReported = 1,     ///< something is not finite; the ring has a hit
    kHitDropped = 2,      ///< something is not finite; the ring was full, or there was no time for the exact pass
    kFiniteReported = 3,  ///< with kExact: nothing is bad; the ring has what was found
};

/// The quick pass's words of one tensor, at ScanHeader::results[slot & (results_capacity - 1)]. The host may look at
/// any time: `sequence_plus_one` is written last, behind a fence of the system, when the output's hit is in the ring
/// too. It is 0 for "never scanned" if the memory started as zero. An output behind a closed gate has no result.
struct alignas(16) RangeResult {
    uint64_t largest;           ///< magnitude, 0 for only zeros
    uint64_t smallest_nonzero;  ///< magnitude, ~0: only zeros
    uint64_t sequence_plus_one;
    uint64_t bad;  ///< a ResultVerdict
};
static_assert(sizeof(RangeResult) == 32);

/// What the blocks of one launch share. Device memory, zero at rest; launches that may overlap have their own.
struct LaunchWords {
    uint32_t blocks_done;  ///< of a launch that does something at its end
    uint32_t unused;
    uint64_t began_inverted;  ///< for `time` and `window`: ~(the device's clock as the first block began)
};

/// Which launches of a graph look in a replay: of those that take turns the ones whose number is one of `open` from
/// `begin` on, in the next replay those from there on. Device memory; a capture's first replay makes it its own,
/// whatever it holds.
struct ReplayWindow {
    uint64_t capture;     ///< whose it is
    uint64_t began;       ///< nanoseconds of the device's clock: the last replay
    uint64_t warm_until;  ///< all look until then
    uint64_t spent;       ///< nanoseconds of launches that looked, since `began`
    int64_t credit;       ///< nanoseconds that may still be spent; below zero: a debt
    uint64_t average;     ///< nanoseconds of a launch that looks
    uint32_t looked;      ///< launches of `spent`
    uint32_t launches;    ///< of the graph
    uint32_t begin, open;
    uint32_t governed;  ///< the graph has a launch with kGoverns
    uint32_t bad;       ///< in this replay something was that is looked at each time
    uint32_t was_bad;   ///< in the last one
    uint32_t is_free;   ///< nothing is owed for this replay
};
inline constexpr uint32_t kAllOpen = ~0u;  ///< for ReplayWindow::open
static_assert(sizeof(ReplayWindow) == 80);

/// What host and device tell each other of a graph. Mapped host memory.
struct alignas(16) ReplayWords {
    uint32_t launches;  ///< the host's: in the graph
    uint32_t done;      ///< the device's: the last replay that is over, but for looks behind its last scan
    uint64_t unused;
};
static_assert(sizeof(ReplayWords) == 16);

/// When a launch ran, by the device's clock, from its first block's start to its last one's end. Mapped host memory.
/// `number_plus_one` is written last, behind a fence of the system. A scan's look is not in it.
struct alignas(32) LaunchTime {
    uint64_t began, ended;  ///< nanoseconds
    uint64_t number_plus_one;
    uint64_t unused;
};
static_assert(sizeof(LaunchTime) == 32);

enum ScanHeaderFlag : uint32_t {
    kClearsGate = 1,  ///< the launch leaves 0 at `gate`: for the last of the batches that one gate holds back
    kTakesTurns = 2,  ///< with `window`: it looks in those replays that have time for it
    kGoverns = 4,     ///< with `window`: once it was launched others take turns; until then all look
};

/// What holds for the whole launch. All addresses are the device's; null where a line allows it. 152 bytes.
/// A sequence number is the word at `sequence` plus an item's order, in 32 bits: the host widens it, and sets
/// first_offender back before it wraps. With `window` the word numbers the replays: the first launch of each steps it,
/// and launches that have it have to be in one stream order. After a launch `scratch` and `launch` are as before it.
struct ScanHeader {
    uint32_t* gate;        ///< null, or the launch does nothing while this word is 0
    uint32_t* raise;       ///< null, or set to 1 by a bad tensor with kRaisesGate
    uint32_t* sequence;    ///< null (0), or a word that is added to every `order` at run time: replays count on
    ItemScratch* scratch;  ///< one per output; launches that may overlap have their own
    LaunchWords* launch;
    ScanState* state;
    HitRing* ring;
    RangeResult* results;    ///< null, or `results_capacity` of them
    LookList* looks;         ///< null, or a look follows
    LaunchTime* time;        ///< null, or where the launch says when it ran
    ReplayWindow* window;    ///< null, or the launch is of a graph
    ReplayWords* replays;    ///< with `window`
    uint64_t capture;        ///< with `window`: not 0, another one for each capture
    uint32_t launch_number;  ///< with `window`: in the graph, from 0
    uint32_t replay_share;   ///< with `window`: what those that take turns may take of all time, in 65,536ths
    uint32_t replay_warmup;  ///< with `window`: microseconds
    uint32_t ring_capacity;  ///< slots, a power of two
    uint32_t chunks;
    uint32_t chunk_log2;  ///< loads per chunk
    uint16_t outputs;     ///< the first items: they are scanned
    uint16_t inputs;      ///< the last items of the table's capacity: looked at upon a hit
    uint32_t flags;
    uint32_t results_capacity;  ///< a power of two
    uint32_t scan_blocks;       ///< with `looks`: of the scan's grid
    uint32_t look_chunks;       ///< of outputs and inputs together
    uint32_t time_number;       ///< for LaunchTime::number_plus_one
};
static_assert(sizeof(ScanHeader) == 152);

template <int kItems, int kDims>
struct ScanTable {
    static constexpr int kItemCapacity = kItems;
    static constexpr int kDimCapacity = kDims;
    ScanHeader header;
    ScanItem items[kItems];
    ScanDim dims[kDims];
};

/// Kernel parameters: at most 4096 bytes on every device, at most 32764 from compute capability 7.0 and CUDA 12.1 on.
using ScanTableSmall = ScanTable<56, 48>;
using ScanTableLarge = ScanTable<480, 396>;
static_assert(sizeof(ScanTableSmall) <= 4096 && sizeof(ScanTableLarge) <= 32764);

inline constexpr char kScanSmallName[] = "numsan_scan_small";
inline constexpr char kScanLargeName[] = "numsan_scan_large";
inline constexpr char kLookSmallName[] = "numsan_look_small";
inline constexpr char kLookLargeName[] = "numsan_look_large";
inline constexpr const char* kKernelNames[] = {kScanSmallName, kScanLargeName, kLookSmallName, kLookLargeName};

}  // namespace numsan::gpu
