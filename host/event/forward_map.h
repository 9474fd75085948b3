// (thread, autograd sequence number) -> the op that made the node. Rings of fixed size, whose pages cost
// memory once they are used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/base/atomic_record.h"
#include "host/base/huge_array.h"
#include "host/base/ids.h"
#include "host/track/forward_record.h"

namespace numsan {

/// [MT] Written by the thread that runs the op, read by whichever thread runs the node. Two threads may share a ring,
/// and a ring may be lapped: then a record is forgotten, never mixed.
class ForwardMap {
  public:
    ForwardMap() = default;
    ForwardMap(const ForwardMap&) = delete;
    ForwardMap& operator=(const ForwardMap&) = delete;
    ~ForwardMap() {
        for (const std::atomic<Ring*>& ring : rings_) delete ring.load(std::memory_order_relaxed);
    }

    struct Record {
        uint64_t thread = 0;
        NodeSeq sequence = NodeSeq::None;
        uint64_t gradients = 1;  ///< 0: recorded with gradients off (the inside of an autograd.Function)
        ForwardRecord forward;
    };
    /// What add() was called with, or would have been.
    struct Made {
        Record record;
        bool node;  ///< the op made the node that has this number
    };

    /// The first op to show a number made its node; later ones (ops without a node) repeat the number. True when this
    /// was the first.
    bool add(const Record& record) {
        Slot& slot = at(record.thread, record.sequence);
        Record old;
        if (slot.load(old) && old.thread == record.thread && old.sequence == record.sequence &&
            old.forward.op != nullptr) {
            return false;
        }
        return slot.store(record);
    }

    /// The op of `record`, which was added, gave birth.
    void born(Record record, BirthId birth) {
        Record kept;
        if (!find(record.thread, record.sequence, kept) || kept.forward.seq != record.forward.seq)
            return;  // forgotten meanwhile
        record.forward.birth = birth;
        at(record.thread, record.sequence).store(record);
    }

    /// False when the number was never shown or is too old.
    bool find(uint64_t thread, NodeSeq sequence, Record& record) {
        return at(thread, sequence).load(record) && record.thread == thread && record.sequence == sequence &&
               record.forward.op != nullptr;  // untouched memory is a record of zeros
    }

  private:
    using Slot = AtomicRecord<Record>;
    using Ring = HugeArray<Slot>;
    static constexpr size_t kThreads = 64;
    static constexpr size_t kRing = 1 << 15;

    Slot& at(uint64_t thread, NodeSeq sequence) {
        std::atomic<Ring*>& place = rings_[thread % kThreads];
        Ring* ring = place.load(std::memory_order_acquire);
        if (ring == nullptr) [[unlikely]]
            ring = make(place);
        return (*ring)[number(sequence) % kRing];
    }
    [[gnu::noinline, gnu::cold]] static Ring* make(std::atomic<Ring*>& place) {
        Ring* ring = nullptr;
        auto made = std::make_unique<Ring>(kRing, Ring::Pages::Small);
        if (place.compare_exchange_strong(ring, made.get(), std::memory_order_acq_rel)) {
            ring = made.release();  // lives as long as the map
        }
        return ring;
    }

    std::atomic<Ring*> rings_[kThreads] = {};
};

}  // namespace numsan
