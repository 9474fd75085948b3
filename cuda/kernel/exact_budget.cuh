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
    return alone ? kBlockPassNanoseconds + bytes / kBlockBytesPerNanosecond
                 : kGridPassNanoseconds + bytes / kGridBytesPerNanosecond;
}

/// What a bad output's pass is taken from.
NUMSAN_DEVICE uint64_t& account_of(ScanState& state, const RangeWords& words, DType dtype) {
    return state.paid_until[words.largest == classes_of(dtype).infinity ? 1 : 0];
}

NUMSAN_DEVICE bool owes_too_much(uint64_t until, uint64_t now) {
    return until > now + kMostOwed && until - now <= kMostOwed + kLongestPass * kExactShare;
}

NUMSAN_DEVICE bool may_pass(const uint64_t& account) { return !owes_too_much(shared_load(&account), nanoseconds()); }

/// One thread. Takes the time of an exact pass; false when too much is owed.
NUMSAN_DEVICE bool pay(uint64_t& account, uint64_t pass) {
    const uint64_t now = nanoseconds();
    for (;;) {
        const uint64_t until = shared_load(&account);
        if (owes_too_much(until, now)) return false;
        const bool owes = until > now && until <= now + kMostOwed;
        if (atomic_exchange_if(&account, until, (owes ? until : now) + pass * kExactShare)) return true;
    }
}

}  // namespace numsan::gpu
