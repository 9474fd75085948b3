// What one block of a scan does: its share of the batch's chunks, and the exact pass over tensors that are bad.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/exact_budget.cuh"
#include "cuda/kernel/exact_pass.cuh"
#include "cuda/kernel/hit_writer.cuh"
#include "cuda/kernel/range_walk.cuh"
#include "cuda/kernel/replay_window.cuh"
#include "cuda/kernel/scan_block.cuh"
#include "cuda/kernel/scan_table.h"

namespace numsan::gpu {

/// The output that owns `chunk`.
NUMSAN_DEVICE uint32_t owner_of(const TableView& table, uint32_t chunk) {
    uint32_t low = 0, high = table.header.outputs - 1u;
    while (low < high) {
        const uint32_t middle = (low + high + 1) >> 1;
        if (table.items[middle].first_chunk <= chunk) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

NUMSAN_DEVICE uint32_t end_of(const TableView& table, uint32_t item) {
    return item + 1u < table.header.outputs ? table.items[item + 1].first_chunk : table.header.chunks;
}

/// Chunks `chunk`, `chunk + stride`, ... of one output. From its end to its start: what the op wrote last is still in
/// L2, and the op's consumer then finds the start there.
template <LaneKind kKind>
NUMSAN_DEVICE RangeWords walk_item(const TableView& table, const ScanItem& item, uint32_t chunk, uint32_t end,
                                   uint32_t stride) {
    RangeTally<kKind> tally;
    const uint32_t chunk_log2 = table.header.chunk_log2;
    if ((item.flags & kGaps) != 0) {
        const UnitWalk walk = unit_walk(item, table.dims);
        NUMSAN_NO_UNROLL
        for (; chunk < end; chunk += stride) {
            walk_gaps(tally, walk, end - 1 - chunk, chunk_log2);
        }
    } else {
        const ElementShape shape = element_shape(item.dtype);
        const PacketRun run = packet_run(item.data, item.positions * shape.lane_bytes * shape.lanes);
        NUMSAN_NO_UNROLL
        for (; chunk < end; chunk += stride) {
            walk_run<kKind>(tally, run, end - 1 - chunk, chunk == item.first_chunk, chunk_log2);
        }
    }
    return tally.words();
}

/// Thread 0. Adds a part's words to its tensor. True when it was the last one: `words` is then the whole tensor's.
NUMSAN_DEVICE bool complete(ItemScratch& scratch, RangeWords& words, uint32_t part_chunks, uint32_t chunks) {
    if (part_chunks == chunks) return true;
    atomic_max(&scratch.largest, words.largest);
    atomic_max(&scratch.smallest_inverted, words.smallest_inverted);
    if (words.negative_zero != 0) atomic_or(&scratch.negative_zero, 1);
    fence_device();
    if (atomic_add(&scratch.chunks_done, part_chunks) + part_chunks != chunks) return false;
    fence_device();
    words = RangeWords{shared_load(&scratch.largest), shared_load(&scratch.smallest_inverted),
                       shared_load(&scratch.negative_zero)};
    shared_store(&scratch.largest, uint64_t(0));
    shared_store(&scratch.smallest_inverted, uint64_t(0));
    shared_store(&scratch.negative_zero, 0u);
    shared_store(&scratch.chunks_done, 0u);
    return true;
}

/// Thread 0. Moves what the other blocks tallied of a bad tensor into the block's own words; the scratch is then at
/// rest.
NUMSAN_DEVICE void take_tally(ItemScratch& scratch, BlockShared& shared) {
    take_words(scratch.tally, shared.tally);
    NUMSAN_NO_UNROLL
    for (uint32_t i = 0; i < kMaxBlocks / 32; ++i) {
        shared.tallied[i] = shared_load(scratch.tallied + i);
        shared_store(scratch.tallied + i, 0u);
    }
}

/// Thread 0. Leaves the tensor that is complete to the look.
NUMSAN_DEVICE void leave_to_look(const ScanHeader& header, const ScanItem& item, BlockShared& shared) {
    ItemScratch& scratch = header.scratch[shared.part.index];
    const uint32_t first = item.inputs != 0 ? atomic_add(&header.looks->inputs, uint32_t(item.inputs)) : 0;
    const uint32_t room = first < kLookedInputs ? kLookedInputs - first : 0;
    scratch.largest = shared.words.largest;
    scratch.smallest_inverted = shared.words.smallest_inverted;
    scratch.negative_zero = shared.words.negative_zero;
    scratch.sequence = shared.sequence;
    scratch.look_input = static_cast<uint16_t>(room != 0 ? first : 0);
    scratch.look_inputs = static_cast<uint16_t>(item.inputs < room ? item.inputs : room);
    atomic_or(&header.looks->outputs, uint64_t(1) << shared.part.index);
}

/// Thread 0. The exact pass over the tensor that is complete, and over its operands, by this block.
NUMSAN_DEVICE void begin_report(const TableView& table, const ScanItem& item, bool bad, BlockShared& shared) {
    const ScanHeader& header = table.header;
    const Part& part = shared.part;
    // What opens a gate is told for as long as it is bad: a loss is one number.
    const bool is_alarm = (item.flags & kRaisesGate) != 0 && bytes_of(item) <= kAlarmBytes;
    const bool paid =
        !bad || is_alarm ||
        pay(account_of(*header.state, shared.words, item.dtype), pass_time(table.items, item, header.looks == nullptr));
    if (paid && header.looks != nullptr) return leave_to_look(header, item, shared);
    shared.tally = TallyWords{};
    if (part.parts != 1) take_tally(header.scratch[part.index], shared);
    if (!paid && header.results == nullptr) drop(header, 1u + item.inputs);  // else the result says it
    if (!paid || !take_tickets(header, 1u + item.inputs, bad, shared.ticket))
        return publish_result(header, item, shared.words, shared.sequence, bad ? kHitDropped : kFinite);
    shared.inputs_left = item.inputs;
    shared.job = TallyJob{part.index, 0, part.parts, 1, part.parts, part.chunks, part.parts != 1};
}

/// Thread 0. After a part is merged: the job that reports the whole tensor if that is bad and complete, else none.
NUMSAN_DEVICE void conclude(const TableView& table, BlockShared& shared) {
    const ScanHeader& header = table.header;
    const Part& part = shared.part;
    const ScanItem& item = table.items[part.index];
    shared.job.item = kNoJob;
    if (!complete(header.scratch[part.index], shared.words, part.own, part.chunks)) return;
    shared.sequence = shared.base + item.order;
    const bool bad = has_nonfinite(shared.words, item.dtype);
    if (!bad && (item.flags & kExact) == 0) return publish_result(header, item, shared.words, shared.sequence, kFinite);
    if (bad) {
        if ((item.flags & kRaisesGate) != 0 && header.raise != nullptr) shared_store(header.raise, 1u);
        if (looks_each_time(header)) shared_store(&header.window->bad, 1u);
        report_offender(header, shared.sequence, item.slot);
    }
    begin_report(table, item, bad, shared);
}

/// Thread 0. What comes after a job: another, or none.
NUMSAN_DEVICE void next_job(const TableView& table, BlockShared& shared) {
    const ScanHeader& header = table.header;
    const Part& part = shared.part;
    const ScanItem& item = table.items[part.index];
    const TallyJob& job = shared.job;
    if (job.item == part.index && job.parts != 1 && !job.rest) {  // its own part of an output
        ItemScratch& scratch = header.scratch[part.index];
        merge(scratch.tally, shared.tally);
        atomic_or(scratch.tallied + part.number / 32, 1u << (part.number % 32));
        conclude(table, shared);
        return;
    }
    publish(table.items[job.item], table.dims, header, shared.ticket++,
            job.item == part.index ? HitRole::Output : HitRole::Input, item, item.inputs, shared.sequence,
            shared.tally);
    if (shared.inputs_left == 0) {
        publish_result(header, item, shared.words, shared.sequence,
                       has_nonfinite(shared.words, item.dtype) ? kHitReported : kFiniteReported);
        shared.job.item = kNoJob;
        return;
    }
    shared.tally = TallyWords{};
    shared.job = TallyJob{uint32_t(item.first_input) + item.inputs - shared.inputs_left--, 0, 1, 1, 1, 1, false};
}

/// All threads. Merges a part of an output. A part that is bad, or of an output that is always looked at, is tallied at
/// once, by its own block; the block that completes the output has the rest of it and its inputs looked at.
NUMSAN_DEVICE void finish_part(const TableView& table, const Part& part, const RangeWords& part_words,
                               BlockShared& shared) {
    const RangeWords words = merge_block(part_words, shared);
    if (thread_rank() == 0) {
        shared.part = part;
        shared.words = words;
        const ScanItem& item = table.items[part.index];
        const bool always = (item.flags & kExact) != 0;
        if (part.parts != 1 && (always || (has_nonfinite(words, item.dtype) &&
                                           may_pass(account_of(*table.header.state, words, item.dtype))))) {
            shared.tally = TallyWords{};
            shared.job = TallyJob{part.index, part.number, part.number + 1, 1, part.parts, part.chunks, false};
        } else {
            conclude(table, shared);
        }
    }
    for (;;) {
        block_barrier();
        if (shared.job.item == kNoJob) return;
        tally_job(table.items[shared.job.item], table.dims, table.header.chunk_log2, shared);
        block_barrier();
        if (thread_rank() == 0) next_job(table, shared);
    }
}

/// Thread 0 of the last block. Says when the launch ran, and what it is charged for.
NUMSAN_DEVICE void publish_time(const ScanHeader& header, bool charged) {
    const uint64_t began = ~shared_load(&header.launch->began_inverted), ended = nanoseconds();
    shared_store(&header.launch->began_inverted, uint64_t(0));
    if (charged) charge(*header.window, ended > began ? ended - began : 0);
    if (header.time == nullptr) return;
    LaunchTime& time = *header.time;
    time.began = began;
    time.ended = ended;
    fence_system();
    shared_store(&time.number_plus_one, uint64_t(header.time_number) + 1);
}

/// All threads. What the last block of the launch does: it closes the gate, says when the launch ran, and begins and
/// ends a replay.
NUMSAN_DEVICE void finish_launch(const ScanHeader& header, bool open, uint32_t blocks, BlockShared& shared) {
    const bool clears = open && header.gate != nullptr && (header.flags & kClearsGate) != 0;
    const bool charged = open && takes_turns(header);
    const bool timed = charged || (open && header.time != nullptr);
    // All threads have asked whether it is their turn before the window moves.
    if (header.window != nullptr && header.launch_number == 0) block_barrier();
    if ((!clears && !timed && !is_at_an_end(header)) || thread_rank() != 0) return;
    fence_device();
    if (atomic_add(&header.launch->blocks_done, 1u) + 1 != blocks) return;
    fence_device();
    shared_store(&header.launch->blocks_done, 0u);
    if (timed) publish_time(header, charged);
    if (clears) shared_store(header.gate, 0u);
    if (header.window == nullptr) return;
    if (header.launch_number == 0) {
        begin_replay(header, nanoseconds());
        shared_store(header.sequence, shared.base);
        govern(header);
    }
    if (header.launch_number + 1 == header.window->launches) {
        fence_system();
        shared_store(&header.replays->done, shared.base);
    }
}

/// Block `block` of `blocks`. All its threads.
NUMSAN_DEVICE void scan_body(const TableView& table, uint32_t block, uint32_t blocks, BlockShared& shared) {
    const ScanHeader& header = table.header;
    const bool open = (header.gate == nullptr || shared_load(header.gate) != 0) && has_turn(header);
    if (thread_rank() == 0) {
        if (block == 0) govern(header);
        shared.base = header.sequence != nullptr ? shared_load(header.sequence) : 0;
        if (header.window != nullptr && header.launch_number == 0) ++shared.base;
        if (open && (header.time != nullptr || takes_turns(header)))
            atomic_max(&header.launch->began_inverted, ~nanoseconds());
    }
    for (uint32_t chunk = open ? block : header.chunks; chunk < header.chunks;) {
        const uint32_t index = owner_of(table, chunk), end = end_of(table, index);
        const ScanItem& item = table.items[index];
        RangeWords words{};
        switch (lane_kind(item.dtype)) {
            case LaneKind::Bits8: words = walk_item<LaneKind::Bits8>(table, item, chunk, end, blocks); break;
            case LaneKind::Bits8Fnuz: words = walk_item<LaneKind::Bits8Fnuz>(table, item, chunk, end, blocks); break;
            case LaneKind::Bits8Unsigned:
                words = walk_item<LaneKind::Bits8Unsigned>(table, item, chunk, end, blocks);
                break;
            case LaneKind::Bits16: words = walk_item<LaneKind::Bits16>(table, item, chunk, end, blocks); break;
            case LaneKind::Bits32: words = walk_item<LaneKind::Bits32>(table, item, chunk, end, blocks); break;
            case LaneKind::Bits64: words = walk_item<LaneKind::Bits64>(table, item, chunk, end, blocks); break;
        }
        const uint32_t chunks = end - item.first_chunk, number = chunk - item.first_chunk;
        const uint32_t own = (end - chunk + blocks - 1) / blocks;
        const uint32_t parts = blocks < chunks ? blocks : chunks;
        finish_part(table, Part{index, number, own, parts, chunks}, words, shared);
        const Part& done = shared.part;  // not in registers meanwhile
        chunk = table.items[done.index].first_chunk + done.number + done.own * blocks;
    }
    finish_launch(header, open, blocks, shared);
}

}  // namespace numsan::gpu
