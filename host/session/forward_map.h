// (thread, autograd sequence number) -> the op that made the node. Rings of fixed size: memory stays flat.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/analyze/birth.h"
#include "host/core/atomic_record.h"

namespace numsan {

/// [MT] Written by the thread that runs the op, read by whichever thread runs the node. Two threads may share a ring,
/// and a ring may be lapped: then a record is forgotten, never mixed.
class ForwardMap {
  public:
    ForwardMap() = default;
    ForwardMap(const ForwardMap&) = delete;
    ForwardMap& operator=(const ForwardMap&) = delete;
    ~ForwardMap() {
        for (const std::atomic<Slot*>& ring : rings_) delete[] ring.load(std::memory_order_relaxed);
    }

    struct Record {
        uint64_t thread = 0;
        uint64_t sequence = ~uint64_t(0);
        int64_t seq = -1;       ///< of the op
        uint64_t gradients = 1; ///< 0: recorded with gradients off (the inside of an autograd.Function)
        ForwardRecord forward;
    };

    /// The first op to show a number made its node; later ones (ops without a node) repeat the number. True when this
    /// was the first.
    bool add(const Record& record) {
        Slot& slot = at(record.thread, record.sequence);
        Record old;
        if (slot.load(old) && old.thread == record.thread && old.sequence == record.sequence) return false;
        return slot.store(record);
    }

    /// The op of `record`, which was added, gave birth.
    void born(Record record, BirthId birth) {
        record.forward.birth = birth;
        at(record.thread, record.sequence).store(record);
    }

    /// False when the number was never shown or is too old.
    bool find(uint64_t thread, uint64_t sequence, Record& record) {
        return at(thread, sequence).load(record) && record.thread == thread && record.sequence == sequence;
    }

  private:
    using Slot = AtomicRecord<Record>;
    static constexpr size_t kThreads = 64;
    static constexpr size_t kRing = 1 << 15;

    Slot& at(uint64_t thread, uint64_t sequence) {
        std::atomic<Slot*>& ring = rings_[thread % kThreads];
        Slot* slots = ring.load(std::memory_order_acquire);
        if (slots == nullptr) {
            auto made = std::make_unique<Slot[]>(kRing);
            if (ring.compare_exchange_strong(slots, made.get(), std::memory_order_acq_rel)) {
                slots = made.release();  // lives as long as the map
            }
        }
        return slots[sequence % kRing];
    }

    std::atomic<Slot*> rings_[kThreads] = {};
};

}  // namespace numsan
