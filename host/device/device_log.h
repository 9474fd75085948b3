// Events that touch a device's memory, kept in the program's order until it is known what the device wrote.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/huge_array.h"
#include "host/base/ids.h"
#include "host/base/output_set.h"
#include "host/event/forward_map.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/track/op_context.h"

namespace numsan {

/// What was read of a tensor on the host while the event happened.
struct HostReading {
    enum class Known : uint8_t { Nothing, Range, Health };
    Known known;
    Range range;
    Health health;
};

/// What was known of an operand on the host while the event happened.
struct HostOperand {
    Ledger::Contents contents;
    Lineage::Memory memory;
};

/// What a device was asked to look at if a value that leaves is bad.
struct DeviceLookBack {
    /// A tensor of an op in the log. They have numbers in this order, see DeviceEvent::sequence.
    struct Looked {
        uint64_t op;   ///< its number in the log
        int8_t place;  ///< among its outputs, or its operands
        bool operand;  ///< the op's results are gone: what they were may follow from it
        uint8_t with;  ///< bit i: operand i is looked at if the output is bad
    };
    struct There {
        uint64_t op;
        uint8_t inputs;  ///< bit i: operand i is still in memory
    };
    uint64_t begin = 0, end = 0;  ///< numbers of the ops in the log
    std::vector<Looked> looked;
    std::vector<There> there;  ///< in order of their numbers
};

/// One event, followed in memory by what it points at. What it names may be gone or used again by now: addresses are
/// identities of that time.
struct DeviceEvent {
    enum class Kind : uint8_t { Op, Node, ZeroGrad, OptimizerBegin, OptimizerEnd };

    Kind kind;
    bool makes_node;
    bool accumulates;  ///< inside a node that adds to a leaf's gradient
    bool scanned;      ///< the scanner answers for what was handed to it
    bool captured;     ///< into a graph, whose replays are reported
    std::atomic<bool> ready;
    uint32_t bytes;  ///< of the record
    OpEvent op;      ///< points into the record; without autograd_facts
    NodeEvent node;
    OpContext context;  ///< what lineage knows is not in it yet
    ForwardMap::Record made;
    // What the scanner is handed has numbers: outputs that are read, operands (gradients of a node) that are watched,
    // then what a look back would look at, but in a graph.
    ScanTicket sequence;        ///< the first number
    uint64_t numbers;           ///< how many
    OutputSet read;             ///< the outputs that are read
    uint32_t handed;            ///< outputs that are read
    uint32_t watched;           ///< operands that are read because their values go elsewhere
    uint64_t watch;             ///< which
    DeviceLookBack* look_back;  ///< owned; null: none
    const char* unseen;         ///< why an output could not be shown, a literal; null: all were
    uint64_t log_end;           ///< of OptimizerEnd: ops that were left unread before it have numbers below
    DeviceEvent* graph;         ///< with `captured`: a copy that outlives this
    uint64_t capture;           ///< with `captured`: its number
    bool governs;               ///< with `captured`: since then scans of that graph take turns
    TensorView* inputs;         ///< of the op or the node
    TensorView* outputs;        ///< of the op; the variable of a node
    HostOperand* operands;      ///< one for each input of an op for which is_of_then() holds, in this order
    HostReading* host;          ///< one for each input and output of an op on the host with kScannable, in this order
};

/// An operand on the host that is judged as it was then: when the event is judged its storage may hold other values, or
/// be gone and its address another's. It is neither written by the op nor a number.
bool is_of_then(const OpEvent& event, const TensorView& input);

/// A ring of records. [MT] Events are added by any thread, taken by one at a time. No allocation after construction.
class DeviceLog {
  public:
    static constexpr size_t kBytes = size_t(8) << 20;

    /// Throws std::bad_alloc.
    DeviceLog() : ring_(kBytes, HugeArray<char>::Pages::Small) {}

    int64_t count() const noexcept { return count_.load(std::memory_order_acquire); }
    bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

    /// Copies an op with all it points at. `numbers` are taken for what the scanner is handed: the record's `sequence`
    /// is the first. Null when there is no room, or when more than `window` numbers would be unanswered. The caller
    /// fills in the rest, then calls commit().
    DeviceEvent* add(const OpEvent& event, const OpContext& context, uint64_t numbers, uint64_t window) noexcept;
    DeviceEvent* add(const NodeEvent& event, const OpContext& context, uint64_t numbers, uint64_t window) noexcept;
    /// ZeroGrad, OptimizerBegin, OptimizerEnd.
    DeviceEvent* add(DeviceEvent::Kind kind) noexcept;
    void commit(DeviceEvent& event) noexcept { event.ready.store(true, std::memory_order_release); }

    /// A copy of an op or a node that is not in the ring. The caller's; null without memory.
    static DeviceEvent* keep(const DeviceEvent& event) noexcept;
    /// Of such a copy.
    static void drop(const DeviceEvent* kept) noexcept;

    /// The oldest event, null when there is none or it is not committed yet. One thread at a time.
    DeviceEvent* front() noexcept;
    void pop() noexcept;

    /// Fork: held over the fork in the parent; the child forgets what is the parent's.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void forget() noexcept;

  private:
    DeviceEvent* reserve(size_t bytes, uint64_t numbers, uint64_t window) noexcept;

    HugeArray<char> ring_;
    std::mutex mutex_;
    uint64_t begin_ = 0, end_ = 0;  ///< bytes since the start; a record never wraps
    ScanTicket next_sequence_{1};
    ScanTicket answered_;  ///< all numbers below were answered or given up
    std::atomic<int64_t> count_{0};
};

}  // namespace numsan
