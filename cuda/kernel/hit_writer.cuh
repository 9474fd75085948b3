// The device's end of the ring: tickets, the first offender, and what is dropped.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
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
        fence_system();
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

/// One thread. Takes `count` neighbouring tickets; false when the ring has no room for all of them: they are dropped.
/// A report of a clean tensor leaves half of the ring to the bad ones, and is not missed.
NUMSAN_DEVICE bool take_tickets(const ScanHeader& header, uint32_t count, bool bad, uint64_t& first) {
    const uint32_t room = bad ? header.ring_capacity : header.ring_capacity / 2;
    for (;;) {
        const uint64_t head = shared_load(&header.state->head);
        const uint64_t tail = shared_load(&header.ring->tail);
        fence_system();  // the host is done with the slots below `tail` before they are written again
        if (head + count - tail > room) {
            if (!bad) return false;
            atomic_add(&header.state->dropped, uint64_t(count));
            ring_bell(&header.state->dropped, &header.ring->dropped);
            return false;
        }
        if (atomic_exchange_if(&header.state->head, head, head + count)) {
            first = head;
            return true;
        }
    }
}

}  // namespace numsan::gpu
