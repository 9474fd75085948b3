// (thread, autograd sequence number) -> the op that made the node. Rings of fixed size: memory stays flat.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/analyze/birth.h"

namespace numsan {

/// Written by the thread that runs the op; read by whichever thread runs the node, which the backward engine orders after it.
class ForwardMap {
  public:
    ForwardMap() = default;
    ForwardMap(const ForwardMap&) = delete;
    ForwardMap& operator=(const ForwardMap&) = delete;
    ~ForwardMap() {
        for (const std::atomic<Record*>& ring : rings_) delete[] ring.load(std::memory_order_relaxed);
    }

    struct Record {
        uint64_t thread = 0;
        uint64_t sequence = ~uint64_t(0);
        int64_t seq = -1;      ///< of the op
        bool gradients = true; ///< false: recorded with gradients off (the inside of an autograd.Function)
        ForwardRecord forward;
    };

    /// The first op to show a number made its node; later ones (ops without a node) repeat the number.
    Record& add(uint64_t thread, uint64_t sequence, int64_t seq, bool gradients, const ForwardRecord& forward) {
        Record& record = at(thread, sequence);
        if (record.thread != thread || record.sequence != sequence) record = {thread, sequence, seq, gradients, forward};
        return record;
    }

    /// Null when the number was never shown or is too old.
    const Record* find(uint64_t thread, uint64_t sequence) {
        const Record& record = at(thread, sequence);
        return record.thread == thread && record.sequence == sequence ? &record : nullptr;
    }

  private:
    static constexpr size_t kThreads = 64;
    static constexpr size_t kRing = 1 << 15;

    Record& at(uint64_t thread, uint64_t sequence) {
        std::atomic<Record*>& ring = rings_[thread % kThreads];
        Record* records = ring.load(std::memory_order_acquire);
        if (records == nullptr) {
            auto made = std::make_unique<Record[]>(kRing);
            if (ring.compare_exchange_strong(records, made.get(), std::memory_order_acq_rel)) {
                records = made.release();  // lives as long as the map
            }
        }
        return records[sequence % kRing];
    }

    std::atomic<Record*> rings_[kThreads] = {};
};

}  // namespace numsan
