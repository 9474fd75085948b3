// What one block of a look does: its share of the exact pass over the outputs that the scan before it left, and over
// their operands. Nothing was left, as nearly always: nothing is done.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/exact_pass.cuh"
#include "cuda/kernel/hit_writer.cuh"
#include "cuda/kernel/range_walk.cuh"
#include "cuda/kernel/scan_block.cuh"
#include "cuda/kernel/scan_table.h"

namespace numsan::gpu {

/// The block's share of tensor `item`. `of_output`: what the scan has tallied of it is left out.
NUMSAN_DEVICE TallyJob share_of(const TableView& table, uint32_t item, bool of_output, uint32_t block,
                                uint32_t blocks) {
    const ElementShape shape = element_shape(table.items[item].dtype);
    const uint64_t loads = loads_of(table.items[item], uint64_t(shape.lane_bytes) * shape.lanes);
    const uint32_t chunks = chunks_of(loads, table.header.chunk_log2);
    const uint32_t cut = of_output ? table.header.scan_blocks : blocks, parts = cut < chunks ? cut : chunks;
    return TallyJob{item, block, parts, blocks, parts, chunks, of_output && parts != 1};
}

/// Thread 0. The last block that has looked at an output reports it; its scratch is then at rest.
NUMSAN_DEVICE void report_look(const TableView& table, uint32_t index, BlockShared& shared) {
    const ScanHeader& header = table.header;
    const ScanItem& item = table.items[index];
    ItemScratch& scratch = header.scratch[index];
    const RangeWords words{scratch.largest, scratch.smallest_inverted, scratch.negative_zero};
    const bool bad = has_nonfinite(words, item.dtype);
    const uint32_t inputs = scratch.look_inputs, first = scratch.look_input, sequence = scratch.sequence;
    uint64_t ticket = 0;
    const bool room = take_tickets(header, 1 + inputs, bad, ticket);
    NUMSAN_NO_UNROLL
    for (uint32_t k = 0; k <= inputs; ++k) {
        take_words(k == 0 ? scratch.tally : header.looks->tally[first + k - 1], shared.tally);
        if (room) {
            publish(table.items[k == 0 ? index : item.first_input + k - 1], table.dims, header, ticket + k,
                    k == 0 ? HitRole::Output : HitRole::Input, item, inputs, sequence, shared.tally);
        }
    }
    scratch = ItemScratch{};
    publish_result(header, item, words, sequence,
                   room ? (bad ? kHitReported : kFiniteReported) : (bad ? kHitDropped : kFinite));
}

/// Thread 0. The first tensor of the next output that is left, or none: then the last block leaves the list empty.
NUMSAN_DEVICE void next_output(const TableView& table, uint32_t block, uint32_t blocks, BlockShared& shared) {
    LookList& looks = *table.header.looks;
    shared.tally = TallyWords{};
    if (shared.looked != 0) {
        shared.part.index = lowest_bit(shared.looked);
        shared.looked &= shared.looked - 1;
        shared.job = share_of(table, shared.part.index, true, block, blocks);
        shared.inputs_left = table.header.scratch[shared.part.index].look_inputs;
        return;
    }
    shared.job.item = kNoJob;
    fence_device();
    if (atomic_add(&looks.blocks_done, 1u) + 1 != blocks) return;
    fence_device();
    shared_store(&looks.blocks_done, 0u);
    shared_store(&looks.inputs, 0u);
    shared_store(&looks.outputs, uint64_t(0));
}

/// Thread 0. Hands over what the block has found of a tensor. What comes next: an operand of the same output, or
/// another output.
NUMSAN_DEVICE void next_share(const TableView& table, uint32_t block, uint32_t blocks, BlockShared& shared) {
    const uint32_t index = shared.part.index;
    ItemScratch& scratch = table.header.scratch[index];
    const uint32_t inputs = scratch.look_inputs, seen = inputs - shared.inputs_left;
    if (shared.job.first < shared.job.last)
        merge(seen == 0 ? scratch.tally : table.header.looks->tally[scratch.look_input + seen - 1], shared.tally);
    if (shared.inputs_left != 0) {
        shared.tally = TallyWords{};
        shared.job = share_of(table, table.items[index].first_input + seen, false, block, blocks);
        --shared.inputs_left;
        return;
    }
    fence_device();
    if (atomic_add(&scratch.chunks_done, 1u) + 1 == blocks) {
        fence_device();
        report_look(table, index, shared);
    }
    next_output(table, block, blocks, shared);
}

/// Block `block` of `blocks`. All its threads.
NUMSAN_DEVICE void look_body(const TableView& table, uint32_t block, uint32_t blocks, BlockShared& shared) {
    if (shared_load(&table.header.looks->outputs) == 0) return;  // no block changes it before all have come here
    if (thread_rank() == 0) {
        shared.looked = shared_load(&table.header.looks->outputs);
        next_output(table, block, blocks, shared);
    }
    for (;;) {
        block_barrier();
        if (shared.job.item == kNoJob) return;
        NUMSAN_NO_UNROLL
        for (uint32_t i = thread_rank(); shared.job.rest && i < kMaxBlocks / 32; i += block_threads())
            shared.tallied[i] = shared_load(table.header.scratch[shared.part.index].tallied + i);
        block_barrier();
        tally_job(table.items[shared.job.item], table.dims, table.header.chunk_log2, shared);
        block_barrier();
        if (thread_rank() == 0) next_share(table, block, blocks, shared);
    }
}

}  // namespace numsan::gpu
