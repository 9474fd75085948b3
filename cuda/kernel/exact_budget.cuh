// What exact passes may take of the device's time.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/bits.cuh"
#include "cuda/kernel/scan_policy.h"
#include "cuda/kernel/scan_table.h"
#include "cuda/kernel/target.cuh"

namespace numsan::gpu {

NUMSAN_DEVICE uint64_t bytes_of(const ScanItem& item) {
    const ElementShape shape = element_shape(item.dtype);
    return item.positions * shape.lane_bytes * shape.lanes;
}

/// Nanoseconds of an exact pass over an output and its operands, by one block or by a grid.
NUMSAN_DEVICE uint64_t pass_time(const ScanItem* items, const ScanItem& output, bool alone) {
    uint64_t bytes = bytes_of(output);
    NUMSAN_NO_UNROLL
    for (uint32_t i = 0; i < output.inputs; ++i) bytes += bytes_of(items[output.first_input + i]);
    return bytes / (alone ? kBlockBytesPerNanosecond : kGridBytesPerNanosecond);
}

NUMSAN_DEVICE bool may_pass(const ScanState& state) {
    return shared_load(&state.paid_until) <= nanoseconds() + kMostOwed;
}

/// One thread. Takes the time of an exact pass; false when too much is owed.
NUMSAN_DEVICE bool pay(ScanState& state, uint64_t pass) {
    const uint64_t now = nanoseconds();
    for (;;) {
        const uint64_t until = shared_load(&state.paid_until);
        if (until > now + kMostOwed) return false;
        if (atomic_exchange_if(&state.paid_until, until, (until > now ? until : now) + pass * kExactShare)) return true;
    }
}

}  // namespace numsan::gpu
