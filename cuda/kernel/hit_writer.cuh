// The device's end of the ring: tickets, the first offender, and what is dropped.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/bits.cuh"
#include "cuda/kernel/scan_table.h"

namespace numsan::gpu {

NUMSAN_DEVICE HitSlot& slot_of(const ScanHeader& header, uint64_t ticket) {
    return reinterpret_cast<HitSlot*>(header.ring + 1)[ticket & (header.ring_capacity - 1)];
}

// A device word and its copy in mapped memory. Whoever stores last has stored the newest: a store is followed by
// another look at the word.
NUMSAN_DEVICE void ring_bell(const uint64_t* word, uint64_t* copy) {
    uint64_t value = shared_load(word);
    for (;;) {
        shared_store(copy, value);
        fence_store_load();
        const uint64_t now = shared_load(word);
        if (now == value) return;
        value = now;
    }
}

/// One thread. Reports a bad tensor whether or not the ring has room.
NUMSAN_DEVICE void report_offender(const ScanHeader& header, uint32_t sequence, uint32_t slot) {
    const uint64_t key = uint64_t(sequence) << 32 | slot;
    if (atomic_min(&header.state->first_offender, key) > key) {
        ring_bell(&header.state->first_offender, &header.ring->first_offender);
    }
}

/// One thread. Counts slots that will not be written.
NUMSAN_DEVICE void drop(const ScanHeader& header, uint32_t count) {
    atomic_add(&header.state->dropped, uint64_t(count));
    ring_bell(&header.state->dropped, &header.ring->dropped);
}

/// One thread. Takes `count` neighbouring tickets; false when the ring has no room for all of them: they are dropped.
/// A report of a clean tensor leaves half of the ring to the bad ones, and is not missed.
NUMSAN_DEVICE bool take_tickets(const ScanHeader& header, uint32_t count, bool bad, uint64_t& first) {
    const uint32_t room = bad ? header.ring_capacity : header.ring_capacity / 2;
    for (;;) {
        const uint64_t tail = shared_load(&header.ring->tail);
        fence_system();  // the host is done with the slots below `tail` before they are written again
        const uint64_t head = shared_load(&header.state->head);  // after it: never behind it
        if (head + count - tail > room) {
            if (bad) drop(header, count);
            return false;
        }
        if (atomic_exchange_if(&header.state->head, head, head + count)) {
            first = head;
            return true;
        }
    }
}

/// Thread 0. The last word of a tensor: all else of its report is visible before.
NUMSAN_DEVICE void publish_result(const ScanHeader& header, const ScanItem& item, const RangeWords& words,
                                  uint32_t sequence, ResultVerdict verdict) {
    if (header.results == nullptr) return;
    RangeResult& result = header.results[item.slot & (header.results_capacity - 1)];
    result.largest = words.largest;
    result.smallest_nonzero = words.smallest_inverted == 0 ? ~uint64_t(0) : ~words.smallest_inverted + 1;
    result.bad = verdict;
    fence_system();
    shared_store(&result.sequence_plus_one, uint64_t(sequence) + 1);
}

}  // namespace numsan::gpu
