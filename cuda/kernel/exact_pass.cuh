// The exact pass over tensors, or parts of them: every block of a scan looks at its own bad part while it is in L2.
// What is left, and the operands, are the work of the block that completes the tensor, or of a look's grid.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/hit_writer.cuh"
#include "cuda/kernel/range_walk.cuh"
#include "cuda/kernel/scan_block.cuh"
#include "cuda/kernel/scan_table.h"
#include "cuda/kernel/tally.cuh"

namespace numsan::gpu {

/// The logical index of element `position` in memory order.
NUMSAN_DEVICE uint64_t index_of(const ScanItem& item, const ScanDim* dims, uint64_t position) {
    if (item.ndim == 0) return position;
    uint64_t index = 0;
    NUMSAN_NO_UNROLL
    for (uint32_t d = 0; d < item.ndim; ++d) {
        const ScanDim& dim = dims[item.first_dim + d];
        const uint64_t next = position / static_cast<uint64_t>(dim.size);
        index += (position - next * static_cast<uint64_t>(dim.size)) * static_cast<uint64_t>(dim.weight);
        position = next;
    }
    return index;
}

/// Where the element with a logical index lies: the digits of the index are the coordinates. The index is the
/// earliest of those that share the place.
NUMSAN_DEVICE const unsigned char* address_of(const ScanItem& item, const ScanDim* dims, uint64_t index,
                                              uint32_t element_bytes) {
    const unsigned char* base = static_cast<const unsigned char*>(item.data);
    if (item.ndim == 0) return base + index * element_bytes;
    NUMSAN_NO_UNROLL
    for (uint32_t d = 0; d < item.ndim; ++d) {
        const ScanDim& dim = dims[item.first_dim + d];
        const uint64_t digits = index / static_cast<uint64_t>(dim.weight);
        base += digits % static_cast<uint64_t>(dim.size) * static_cast<uint64_t>(dim.stride);
    }
    return base;
}

NUMSAN_DEVICE uint64_t load_bits(const unsigned char* p, uint32_t bytes) {
    switch (bytes) {
        case 1: return load_lane<uint8_t>(p);
        case 2: return load_lane<uint16_t>(p);
        case 4: return load_lane<uint32_t>(p);
        default: return load_lane<uint64_t>(p);
    }
}

/// Some lanes that one thread holds, lowest address first.
struct LaneBits {
    uint64_t low, high;
};

/// Walks lanes of one tensor for one thread.
template <class Word>
class ExactWalk {
  public:
    NUMSAN_DEVICE ExactWalk(const ScanItem& item, const ScanDim* dims, TallyWords& block)
        : item_(item), dims_(dims), block_(block), shape_(element_shape(item.dtype)), classes_(item.dtype) {}

    /// Loads [begin, end) of the quick pass, which have no head and no tail.
    NUMSAN_DEVICE void loads(uint64_t begin, uint64_t end) {
        const unsigned char* base = static_cast<const unsigned char*>(item_.data);
        if ((item_.flags & kGaps) != 0) {
            const UnitWalk walk = unit_walk(item_, dims_);
            end = end < walk.units ? end : walk.units;
            NUMSAN_NO_UNROLL
            for (uint64_t i = begin + thread_rank(); i < end; i += block_threads()) {
                lanes(load(base + walk.offset(i), walk.log2), i << walk.log2, 1u << walk.log2);
            }
            return;
        }
        const PacketRun run = packet_run(base, item_.positions * shape_.lane_bytes * shape_.lanes);
        end = end < run.packets ? end : run.packets;
        NUMSAN_NO_UNROLL
        for (uint64_t i = begin + thread_rank(); i < end; i += block_threads()) {
            lanes(load(base + run.head + i * 16, 4), run.head + i * 16, 16);
        }
    }

    /// What sticks out of a run of memory on both sides: it goes with the last chunk, which is in part 0.
    NUMSAN_DEVICE void head_and_tail() {
        if ((item_.flags & kGaps) != 0) return;
        const unsigned char* base = static_cast<const unsigned char*>(item_.data);
        const PacketRun run = packet_run(base, item_.positions * shape_.lane_bytes * shape_.lanes);
        const uint32_t log2 = shape_.lane_bytes == 8 ? 3 : shape_.lane_bytes >> 1;
        NUMSAN_NO_UNROLL
        for (uint32_t i = thread_rank() << log2; i < run.head + run.tail; i += block_threads() << log2) {
            const uint64_t at = i < run.head ? i : i + run.packets * 16;
            lanes(load(base + at, log2), at, shape_.lane_bytes);
        }
    }

    NUMSAN_DEVICE void finish() const { tally_.merge_into(block_); }

  private:
    NUMSAN_DEVICE static LaneBits load(const unsigned char* p, uint32_t log2) {
        if (log2 < 4) return LaneBits{load_bits(p, 1u << log2), 0};
        const Packet v = load_packet(p);
        return LaneBits{v.x | uint64_t(v.y) << 32, v.z | uint64_t(v.w) << 32};
    }

    /// `at`: bytes of the tensor's own that lie before, in memory order.
    NUMSAN_DEVICE void lanes(LaneBits bits, uint64_t at, uint32_t bytes) {
        const uint32_t shift = 8 * shape_.lane_bytes;
        NUMSAN_NO_UNROLL
        for (uint32_t done = 0; done < bytes; done += shape_.lane_bytes) {
            const Word lane = static_cast<Word>(bits.low) & (~Word(0) >> (8 * sizeof(Word) - shift));
            if (tally_.add(lane, classes_)) {
                note_bad(block_, index_of(item_, dims_, (at + done) / (shape_.lane_bytes * shape_.lanes)));
            }
            if constexpr (sizeof(Word) == 8) {
                bits.low = bits.high;
            } else {
                bits.low = bits.low >> shift | bits.high << (64 - shift);
                bits.high >>= shift;
            }
        }
    }

    const ScanItem& item_;
    const ScanDim* dims_;
    TallyWords& block_;
    ElementShape shape_;
    WordClasses<Word> classes_;
    ExactTally<Word> tally_;
};

// All threads.
template <class Word>
NUMSAN_DEVICE void tally_job(const ScanItem& item, const ScanDim* dims, uint32_t chunk_log2, BlockShared& shared) {
    const TallyJob& job = shared.job;
    ExactWalk<Word> walk(item, dims, shared.tally);
    NUMSAN_NO_UNROLL
    for (uint32_t part = job.first; part < job.last; part += job.step) {
        if (job.rest && (shared.tallied[part / 32] >> (part % 32) & 1u) != 0) continue;
        NUMSAN_NO_UNROLL
        for (uint32_t c = part; c < job.chunks; c += job.parts) {
            const uint64_t begin = uint64_t(job.chunks - 1 - c) << chunk_log2;
            walk.loads(begin, job.chunks == 1 ? ~uint64_t(0) : begin + (uint64_t(1) << chunk_log2));
        }
        if (part == 0) walk.head_and_tail();
    }
    walk.finish();
}

/// All threads. Adds what shared.job says to shared.tally.
NUMSAN_DEVICE void tally_job(const ScanItem& item, const ScanDim* dims, uint32_t chunk_log2, BlockShared& shared) {
    if (element_shape(item.dtype).lane_bytes == 8) {
        tally_job<uint64_t>(item, dims, chunk_log2, shared);
    } else {
        tally_job<uint32_t>(item, dims, chunk_log2, shared);
    }
}

// Thread 0.
NUMSAN_DEVICE void fill(HitSlot& slot, const ScanItem& item, const ScanDim* dims, const ElementShape& shape,
                        const TallyWords& tally) {
    const uint64_t repeat = item.repeat, lanes = item.positions * shape.lanes;
    slot.elements = static_cast<int64_t>(item.positions * repeat);
    slot.nan = static_cast<int64_t>(tally.nan * repeat);
    slot.pos_inf = static_cast<int64_t>(tally.pos_inf * repeat);
    slot.neg_inf = static_cast<int64_t>(tally.neg_inf * repeat);
    slot.subnormal = static_cast<int64_t>(tally.subnormal * repeat);
    slot.zero = static_cast<int64_t>(tally.zero * repeat);
    slot.finite = static_cast<int64_t>((lanes - tally.nan - tally.pos_inf - tally.neg_inf) * repeat);
    slot.first_bad = static_cast<int64_t>(tally.first_bad_inverted == 0 ? ~uint64_t(0) : ~tally.first_bad_inverted);
    slot.largest = tally.largest;
    slot.smallest = tally.smallest_inverted == 0 ? ~uint64_t(0) : ~tally.smallest_inverted + 1;
    slot.lowest = from_ordered(~tally.lowest_inverted);
    slot.highest = from_ordered(tally.highest_ordered);
    slot.dtype = item.dtype;
    slot.argument = item.argument;
    uint64_t first_bits = 0;
    uint32_t kinds = 0;
    if (tally.first_bad_inverted != 0) {
        const uint64_t index = ~tally.first_bad_inverted;
        const unsigned char* element = address_of(item, dims, index, shape.lane_bytes * shape.lanes);
        NUMSAN_NO_UNROLL
        for (uint32_t lane = 0; lane < shape.lanes; ++lane) {
            const uint64_t bits = load_bits(element + lane * shape.lane_bytes, shape.lane_bytes);
            const KindSet kind = kind_of(bits, classes_of(item.dtype));
            if (kind != 0 && kinds == 0) first_bits = bits;
            kinds |= kind;
        }
    }
    slot.first_bad_bits = first_bits;
    slot.kinds = static_cast<KindSet>(kinds);
}

/// Thread 0. Reports `item`, whose tally is complete, in the ring's slot for `ticket`.
NUMSAN_DEVICE void publish(const ScanItem& item, const ScanDim* dims, const ScanHeader& header, uint64_t ticket,
                           HitRole role, const ScanItem& output, uint32_t inputs, uint32_t sequence,
                           const TallyWords& tally) {
    HitSlot& slot = slot_of(header, ticket);
    fill(slot, item, dims, element_shape(item.dtype), tally);
    slot.sequence = sequence;
    slot.slot = output.slot;
    slot.role = role;
    slot.inputs = role == HitRole::Output ? inputs : 0;
    fence_system();
    shared_store(&slot.ready, ticket + 1);
}

}  // namespace numsan::gpu
