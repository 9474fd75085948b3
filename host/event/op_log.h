// Ops whose outputs were not read when they were made, for a look back once something bad has shown.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/huge_array.h"
#include "host/base/ids.h"
#include "host/base/output_set.h"
#include "host/event/forward_map.h"
#include "host/track/op_context.h"

namespace numsan {

/// One op, with its views copied. Storages are watched: nothing is kept alive, but no address is used anew.
struct LoggedOp {
    static constexpr int32_t kMaxInputs = 6;
    static constexpr int32_t kMaxOutputs = 4;
    static constexpr int16_t kMaxDims = 6;

    /// Of an op that was captured into a CUDA graph.
    struct InGraph {
        uint64_t capture = 0;  ///< its number; 0: the op ran
        ScanTicket first;      ///< of the outputs that each replay may report
    };

    // What each op has comes first: a record is met again when caches and TLB have lost it.
    OpEvent event;            ///< points into this record
    OpContext context;        ///< without autograd_facts
    ForwardMap::Record made;  ///< as it was added to the forward map
    InGraph graph;
    OutputSet unread;
    OutputSet bad;     ///< of a look back: those that are here and hold something that is not finite
    int32_t dropped;   ///< operands that found no room
    bool dropped_out;  ///< forgotten before its turn: its storages are not watched any more
    bool makes_node;
    TensorView outputs[kMaxOutputs];
    TensorView inputs[kMaxInputs];
    int64_t dims[(kMaxInputs + kMaxOutputs) * 2 * kMaxDims];
    double scalars[4];
    char node[96];

    LoggedOp() = default;
    /// The pointers into it point into the copy.
    LoggedOp(const LoggedOp& other) noexcept;
    LoggedOp& operator=(const LoggedOp&) = delete;
};

/// A ring: what is not looked at for kOps ops is forgotten. [MT] Nothing of the program's, no reference count either,
/// is touched under its lock: what keeps a storage may be a Python object, and the interpreter's lock another thread's.
class OpLog {
  public:
    static constexpr size_t kOps = 4096;

    /// From here on the log is usable. Once. Throws std::bad_alloc.
    void use(const StorageApi& storages);
    bool usable() const noexcept { return storages_.load(std::memory_order_acquire) != nullptr; }
    const StorageApi& storages() const noexcept { return *storages_.load(std::memory_order_acquire); }

    /// An op over lists becomes a record for each output. `graph.first` is the first unread one's.
    void add(const OpEvent& event, const OpContext& context, const ForwardMap::Record& made, bool makes_node,
             OutputSet unread, LoggedOp::InGraph graph = {});

    /// Calls visit(ops), oldest first, and forgets them; other threads go on adding. Storages stay watched during the
    /// visit. False: another thread is at it, and nothing was done.
    template <class Visit>
    bool take(Visit&& visit) {
        if (taking_.exchange(true, std::memory_order_acquire)) return false;
        const std::vector<LoggedOp*> ops = swap();
        visit(ops);
        for (const LoggedOp* op : ops) unwatch(*op);
        taking_.store(false, std::memory_order_release);
        return true;
    }
    void clear() {
        take([](const std::vector<LoggedOp*>&) {});
    }

    // For a look back later: ops go by their numbers, in order of their coming.

    /// The number that the next op will have.
    uint64_t end() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return end_;
    }
    /// Calls visit(number, op) for the ops that are there, oldest first. Others wait meanwhile.
    template <class Visit>
    void each(Visit&& visit) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (uint64_t n = begin_; n != end_; ++n) {
            if (!(*ring_)[n % kOps].dropped_out) visit(n, (*ring_)[n % kOps]);
        }
    }
    /// Copies of those from `begin` to before `end` that are still there. Throws std::bad_alloc.
    void copy(uint64_t begin, uint64_t end, std::deque<std::pair<uint64_t, LoggedOp>>& to);
    /// Forgets those below `number` that keep(number, op) is false of.
    template <class Keep>
    void drop(uint64_t number, Keep&& keep) {
        std::vector<const void*> watched;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (uint64_t n = begin_; n < std::min(number, end_); ++n) {
                LoggedOp& op = (*ring_)[n % kOps];
                if (op.dropped_out || keep(n, op)) continue;
                storages_of(op, watched);
                op.dropped_out = true;
                (*watched_)[n % kOps].count = 0;
            }
            while (begin_ != end_ && (*ring_)[begin_ % kOps].dropped_out) ++begin_;
        }
        for (const void* storage : watched) storages().unwatch(storage);
    }

    /// Fork: held over the fork in the parent. The child forgets what is the parent's: its references are copies.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void forget_parents() noexcept {
        begin_ = end_;
        taking_.store(false, std::memory_order_relaxed);
    }

  private:
    using Ring = HugeArray<LoggedOp>;
    /// The storages of a record that are watched: side by side, as a record that gives way was last touched kOps ago.
    struct Watched {
        int32_t count;
        const void* storages[LoggedOp::kMaxInputs + LoggedOp::kMaxOutputs];
    };

    void add_one(const OpEvent& event, const OpContext& context, const ForwardMap::Record& made, bool makes_node,
                 OutputSet unread, LoggedOp::InGraph graph);
    std::vector<LoggedOp*> swap();
    void unwatch(const LoggedOp& op);
    static void storages_of(const LoggedOp& op, std::vector<const void*>& storages);

    std::atomic<const StorageApi*> storages_{nullptr};
    std::atomic<bool> taking_{false};
    std::mutex mutex_;
    uint64_t begin_ = 0, end_ = 0;                 ///< in the ring that is added to
    std::unique_ptr<Ring> ring_, spare_;           ///< the spare one is being looked back at, or is empty
    std::unique_ptr<HugeArray<Watched>> watched_;  ///< of the ring that is added to
};

}  // namespace numsan
