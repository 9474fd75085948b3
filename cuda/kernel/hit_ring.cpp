// The host's end of the ring.
#include "cuda/kernel/hit_ring.h"

#include <cstring>

#include "host/base/value_classes.h"

namespace numsan::gpu {

void initialise(HitRing& ring, uint32_t capacity) noexcept {
    std::memset(static_cast<void*>(&ring), 0, HitRing::bytes(capacity));
    ring.first_offender = kNoOffender;
}

bool HitReader::next(HitSlot& hit) noexcept {
    HitSlot& slot = ring_->slots()[tail_ & mask_];
    if (std::atomic_ref(slot.ready).load(std::memory_order_acquire) != tail_ + 1) return false;
    hit = slot;
    ++tail_;
    std::atomic_ref(ring_->tail).store(tail_, std::memory_order_release);
    return true;
}

Health to_health(const HitSlot& hit) noexcept {
    const DTypeInfo& type = info(hit.dtype);
    Health health{};
    health.elements = hit.elements;
    health.nan = hit.nan;
    health.pos_inf = hit.pos_inf;
    health.neg_inf = hit.neg_inf;
    health.subnormal = hit.subnormal;
    health.zero = type.has_zero() ? hit.zero : 0;
    health.finite = hit.finite;
    health.first_bad = hit.first_bad;
    health.first_bad_bits = hit.first_bad_bits;
    health.first_bad_kind = hit.kinds;
    if (hit.finite != 0) {
        health.absmax = decode_magnitude(hit.largest, type);
        const uint64_t smallest = health.zero == hit.zero ? hit.smallest : 0;
        health.absmin = smallest == ~uint64_t(0) ? 0 : decode_magnitude(smallest, type);
        health.min = decode_signed_magnitude(hit.lowest, type);
        health.max = decode_signed_magnitude(hit.highest, type);
    }
    return health;
}

}  // namespace numsan::gpu
