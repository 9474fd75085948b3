// The quick pass over one chunk of a tensor: which bytes a thread loads. Never a byte that is not the tensor's.
#pragma once

#include <cstdint>

#include "cuda/kernel/bits.cuh"
#include "cuda/kernel/scan_table.h"
#include "cuda/kernel/target.cuh"

namespace numsan::gpu {

/// A run of memory as 16-byte packets, with what sticks out on both sides.
struct PacketRun {
    const unsigned char* body;  ///< multiple of 16
    uint64_t packets;
    uint32_t head;  ///< bytes before the body, below 16
    uint32_t tail;  ///< bytes after it, below 16
};

NUMSAN_DEVICE PacketRun packet_run(const void* data, uint64_t bytes) {
    const unsigned char* begin = static_cast<const unsigned char*>(data);
    uint32_t head = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(data)) & 15u;
    if (head > bytes) head = static_cast<uint32_t>(bytes);
    const uint64_t rest = bytes - head;
    return PacketRun{begin + head, rest >> 4, head, static_cast<uint32_t>(rest) & 15u};
}

/// One load of 2^log2 bytes, as two words for RangeTally::add. A 16-byte load goes through load_packet.
template <class Tally>
NUMSAN_DEVICE void add_unit(Tally& tally, const unsigned char* p, uint32_t log2) {
    switch (log2) {
        case 0: tally.add(load_lane<uint8_t>(p), 0); break;
        case 1: tally.add(load_lane<uint16_t>(p), 0); break;
        case 2: tally.add(load_lane<uint32_t>(p), 0); break;
        case 3: {
            const uint64_t w = load_lane<uint64_t>(p);
            tally.add(static_cast<uint32_t>(w), static_cast<uint32_t>(w >> 32));
            break;
        }
        default: add_packet(tally, load_packet(p)); break;
    }
}

template <LaneKind kKind>
inline constexpr uint32_t kLaneLog2 = kKind == LaneKind::Bits64   ? 3
                                      : kKind == LaneKind::Bits32 ? 2
                                      : kKind == LaneKind::Bits16 ? 1
                                                                  : 0;

/// Packets [0, packets) from `body`. A thread that has kUnroll loads has them in the loop, so fewer remain; those
/// beyond the end become zeros.
template <class Tally>
NUMSAN_DEVICE void walk_packets(Tally& tally, const unsigned char* body, uint32_t packets) {
    constexpr uint32_t kTrip = block_threads() * kUnroll;
    uint32_t i = thread_rank();
    const unsigned char* p = body + size_t(i) * 16;
    NUMSAN_NO_UNROLL
    for (; i + block_threads() * (kUnroll - 1) < packets; i += kTrip, p += size_t(kTrip) * 16) {
        Packet v[kUnroll];
        NUMSAN_UNROLL
        for (uint32_t u = 0; u < kUnroll; ++u) v[u] = load_packet(p + size_t(u) * block_threads() * 16);
        NUMSAN_UNROLL
        for (uint32_t u = 0; u < kUnroll; ++u) add_packet(tally, v[u]);
    }
    if (i >= packets) return;
    constexpr uint32_t kRest = kUnroll - 1;
    Packet v[kRest];
    NUMSAN_UNROLL
    for (uint32_t u = 0; u < kRest; ++u) {
        v[u] = Packet{0, 0, 0, 0};
        if (i + u * block_threads() < packets) v[u] = load_packet(p + size_t(u) * block_threads() * 16);
    }
    NUMSAN_UNROLL
    for (uint32_t u = 0; u < kRest; ++u) add_packet(tally, v[u]);
}

/// Chunk `chunk` of a tensor that is one run of memory. The last one takes the head and the tail too.
template <LaneKind kKind, class Tally>
NUMSAN_DEVICE void walk_run(Tally& tally, const PacketRun& run, uint32_t chunk, bool last, uint32_t chunk_log2) {
    constexpr uint32_t kLog2 = kLaneLog2<kKind>;
    const uint64_t first = uint64_t(chunk) << chunk_log2;
    const uint64_t left = run.packets - first;
    const uint32_t packets = left < (1u << chunk_log2) ? static_cast<uint32_t>(left) : 1u << chunk_log2;
    walk_packets(tally, run.body + first * 16, packets);
    if (!last) return;
    NUMSAN_NO_UNROLL
    for (uint32_t i = thread_rank() << kLog2; i < run.head + run.tail; i += block_threads() << kLog2) {
        add_unit(tally, run.body - run.head + (i < run.head ? i : i + run.packets * 16), kLog2);
    }
}

/// Distance in bytes of position `index` from a tensor's lowest address, over dimensions [first, ndim).
NUMSAN_DEVICE uint64_t offset_of(const ScanDim* dims, uint32_t first, uint32_t ndim, uint64_t index) {
    uint64_t offset = 0;
    NUMSAN_NO_UNROLL
    for (uint32_t d = first; d + 1 < ndim; ++d) {
        const uint64_t size = static_cast<uint64_t>(dims[d].size), next = index / size;
        offset += (index - next * size) * static_cast<uint64_t>(dims[d].stride);
        index = next;
    }
    return first < ndim ? offset + index * static_cast<uint64_t>(dims[ndim - 1].stride) : offset;
}

/// A tensor with gaps as loads of one size: each run of memory in it is `run_units` of them.
struct UnitWalk {
    const unsigned char* base;
    const ScanDim* dims;
    uint64_t units;
    uint64_t run_units;
    uint32_t first_dim;  ///< the dimensions from here on lie around the runs
    uint32_t ndim;
    uint32_t log2;

    NUMSAN_DEVICE uint64_t offset(uint64_t unit) const {
        const uint64_t run = unit / run_units;
        return offset_of(dims, first_dim, ndim, run) + ((unit - run * run_units) << log2);
    }
};

NUMSAN_DEVICE UnitWalk unit_walk(const ScanItem& item, const ScanDim* dims) {
    const ElementShape shape = element_shape(item.dtype);
    const uint64_t element = uint64_t(shape.lane_bytes) * shape.lanes;
    const bool run = (item.flags & kRun) != 0;
    const ScanDim* own = dims + item.first_dim;
    const uint64_t run_bytes = run ? element * static_cast<uint64_t>(own[0].size) : element;
    return UnitWalk{static_cast<const unsigned char*>(item.data),
                    own,
                    (item.positions * element) >> item.unit_log2,
                    run_bytes >> item.unit_log2,
                    run ? 1u : 0u,
                    item.ndim,
                    item.unit_log2};
}

/// Chunk `chunk` of a tensor with gaps.
template <class Tally>
NUMSAN_DEVICE void walk_gaps(Tally& tally, const UnitWalk& walk, uint32_t chunk, uint32_t chunk_log2) {
    const uint64_t first = uint64_t(chunk) << chunk_log2;
    const uint64_t left = walk.units - first;
    const uint64_t end = first + (left < (1u << chunk_log2) ? left : 1u << chunk_log2);
    NUMSAN_NO_UNROLL
    for (uint64_t i = first + thread_rank(); i < end; i += block_threads()) {
        add_unit(tally, walk.base + walk.offset(i), walk.log2);
    }
}

/// How many loads the quick pass needs for `item`, not counting a run's head and tail. For the host as well.
NUMSAN_DEVICE uint64_t loads_of(const ScanItem& item, uint64_t element_bytes) {
    const uint64_t bytes = item.positions * element_bytes;
    return (item.flags & kGaps) != 0 ? bytes >> item.unit_log2 : packet_run(item.data, bytes).packets;
}

NUMSAN_DEVICE uint32_t chunks_of(uint64_t loads, uint32_t chunk_log2) {
    const uint64_t chunks = (loads + (1u << chunk_log2) - 1) >> chunk_log2;
    return chunks == 0 ? 1u : static_cast<uint32_t>(chunks);
}

}  // namespace numsan::gpu
