// Events that touch a device's memory, kept in the program's order until it is known what the device wrote.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "host/analyze/birth.h"
#include "host/analyze/ledger.h"
#include "host/core/adapter_abi.h"
#include "host/core/huge_array.h"
#include "host/session/forward_map.h"

namespace numsan {

/// What was read of a tensor on the host while the event happened.
struct HostReading {
    enum class Known : uint8_t { Nothing, Range, Health };
    Known known;
    Range range;
    Health health;
    Ledger::Entry births;  ///< of an operand: what its storage held then
};

/// One event, followed in memory by what it points at. What it names may be gone or used again by now: addresses are
/// identities of that time.
struct DeviceEvent {
    enum class Kind : uint8_t { Op, Node, ZeroGrad, OptimizerBegin, OptimizerEnd };

    Kind kind;
    bool makes_node;
    bool accumulates;  ///< inside a node that adds to a leaf's gradient
    bool scanned;      ///< the scanner answers for what was handed to it
    bool captured;     ///< into a graph, whose replays are told of
    std::atomic<bool> ready;
    uint32_t bytes;  ///< of the record
    OpEvent op;      ///< points into the record; without kin
    NodeEvent node;
    OpContext context;  ///< what lineage knows is not in it yet
    ForwardMap::Record made;
    uint64_t sequence;  ///< of the first output that is handed to the scanner; the others count on
    uint64_t handed;    ///< how many
    DeviceEvent* graph;   ///< with `captured`: a copy that outlives this
    TensorView* inputs;   ///< of the op or the node
    TensorView* outputs;  ///< of the op; the variable of a node
    HostReading* host;    ///< one for each input and output of an op on the host with kScannable, in this order
};

/// A ring of records. [MT] Events are added by any thread, taken by one at a time. No allocation after construction.
class DeviceLog {
  public:
    static constexpr size_t kBytes = size_t(8) << 20;

    /// Throws std::bad_alloc.
    DeviceLog() : ring_(kBytes, HugeArray<char>::Pages::Small) {}

    int64_t count() const noexcept { return count_.load(std::memory_order_acquire); }
    bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

    /// Copies an op with all it points at. `handed` numbers are taken for outputs: the record's `sequence` is the
    /// first. Null when there is no room, or when more than `window` numbers would be unanswered. The caller fills
    /// `host`, then calls commit().
    DeviceEvent* add(const OpEvent& event, const OpContext& context, uint64_t handed, uint64_t window) noexcept;
    DeviceEvent* add(const NodeEvent& event, const OpContext& context) noexcept;
    /// ZeroGrad, OptimizerBegin, OptimizerEnd.
    DeviceEvent* add(DeviceEvent::Kind kind) noexcept;
    void commit(DeviceEvent& event) noexcept { event.ready.store(true, std::memory_order_release); }

    /// A copy of an op that is not in the ring. The caller's; null without memory.
    static DeviceEvent* keep(const DeviceEvent& event) noexcept;

    /// The oldest event, null when there is none or it is not committed yet. One thread at a time.
    DeviceEvent* front() noexcept;
    void pop() noexcept;

    /// Fork: held over the fork in the parent; the child forgets what is the parent's.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void forget() noexcept;

  private:
    DeviceEvent* reserve(size_t bytes, uint64_t handed, uint64_t window) noexcept;

    HugeArray<char> ring_;
    std::mutex mutex_;
    uint64_t begin_ = 0, end_ = 0;  ///< bytes since the start; a record never wraps
    uint64_t next_sequence_ = 1;
    uint64_t answered_ = 0;  ///< all numbers below were answered or given up
    std::atomic<int64_t> count_{0};
};

}  // namespace numsan
