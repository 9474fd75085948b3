// The ring through which the device reports bad tensors to the host, in pinned host memory that the device maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host/base/dtype.h"
#include "host/base/health.h"

namespace numsan::gpu {

enum class HitRole : uint8_t { Output, Input };

/// One tensor of a hit: what the exact pass found. 128 bytes.
///
///      0   ready        ticket + 1 once the rest is written; any other value: not yet
///      8   sequence     in device order; in a graph the replay's        12  slot      the host's number of the record
///     16   elements     logical elements                               24  nan       real lanes, as in Health
///     32   pos_inf                                                     40  neg_inf
///     48   subnormal                                                   56  zero
///     64   finite                                                      72  first_bad logical index, -1: none
///     80   first_bad_bits                                              88  largest   finite magnitude
///     96   smallest     finite non-zero magnitude, ~0: none           104  lowest    finite, signed magnitude
///    112   highest      finite, signed magnitude                      120  kinds, dtype, role, argument
///                                                                     124  inputs    slots that follow this one
///
/// Of a type without a zero `zero` counts pattern 0, its smallest number; `smallest` leaves it out all the same.
/// An output is followed by its inputs, in neighbouring tickets, with the same sequence and slot.
struct alignas(128) HitSlot {
    uint64_t ready;
    uint32_t sequence;
    uint32_t slot;
    int64_t elements;
    int64_t nan;
    int64_t pos_inf;
    int64_t neg_inf;
    int64_t subnormal;
    int64_t zero;
    int64_t finite;
    int64_t first_bad;
    uint64_t first_bad_bits;
    uint64_t largest;
    uint64_t smallest;
    int64_t lowest;
    int64_t highest;
    KindSet kinds;  ///< of the first bad element
    DType dtype;
    HitRole role;
    uint8_t argument;  ///< position of an input among the op's arguments, of an output among its returns
    uint32_t inputs;
};
static_assert(sizeof(HitSlot) == 128 && offsetof(HitSlot, elements) == 16 && offsetof(HitSlot, first_bad) == 72);
static_assert(offsetof(HitSlot, largest) == 88 && offsetof(HitSlot, kinds) == 120 && offsetof(HitSlot, inputs) == 124);

/// Before the slots. The host writes the first line, the device the second, so that neither pulls the other's line.
///
///      0   tail            tickets that the host has taken (host writes, device reads)
///     64   first_offender  doorbell: copy of ScanState::first_offender, may lag, never invents
///     72   dropped         doorbell: copy of ScanState::dropped
///    128   slots           capacity x 128 bytes; ticket t lies at t & (capacity - 1)
///
/// Writer (device): take tickets [head, head + n) by compare-and-swap in device memory if head + n - tail <= capacity,
/// else count n as dropped; fill the slots; system fence; ready = ticket + 1. An output without bad values has half of
/// the capacity, and is not counted where it finds no room.
/// Reader (host, one thread): while slots[tail].ready == tail + 1 (acquire) copy the slot, then tail + 1 (release).
struct alignas(128) HitRing {
    uint64_t tail;
    uint64_t unused[7];
    uint64_t first_offender;
    uint64_t dropped;
    uint64_t unused2[6];

    HitSlot* slots() { return reinterpret_cast<HitSlot*>(this + 1); }
    static constexpr size_t bytes(uint32_t capacity) { return sizeof(HitRing) + size_t(capacity) * sizeof(HitSlot); }
};
static_assert(sizeof(HitRing) == 128 && offsetof(HitRing, first_offender) == 64 && offsetof(HitRing, dropped) == 72);

/// No tensor was bad yet.
inline constexpr uint64_t kNoOffender = ~uint64_t(0);

/// Makes `ring`, of HitRing::bytes(capacity) bytes aligned to 128, empty. Before any kernel knows of it.
void initialise(HitRing& ring, uint32_t capacity) noexcept;

/// Takes hits out of a ring, on the host, without a CUDA call. One thread at a time.
class HitReader {
  public:
    /// Does not own `ring`. `capacity` is a power of two, as in the tables of the kernels that write to it.
    HitReader(HitRing& ring, uint32_t capacity) : ring_(&ring), mask_(capacity - 1) {}

    /// False when the next hit is not there yet: `hit` is untouched.
    bool next(HitSlot& hit) noexcept;

    /// (sequence << 32 | slot) of the earliest bad tensor that the device has reported, kNoOffender before.
    uint64_t first_offender() const noexcept {
        return std::atomic_ref(ring_->first_offender).load(std::memory_order_acquire);
    }

    /// Slots that found the ring full; of replays also those that were left out for lack of time.
    uint64_t dropped() const noexcept { return std::atomic_ref(ring_->dropped).load(std::memory_order_acquire); }

  private:
    HitRing* ring_;
    uint64_t mask_;
    uint64_t tail_ = 0;
};

/// The exact pass's words as values.
Health to_health(const HitSlot& hit) noexcept;

}  // namespace numsan::gpu
