// What is kept of each thread of the program.
#pragma once

#include <cstdint>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/event/optimizer_rounds.h"
#include "host/stacks/range_path.h"

namespace numsan {

struct Break;

/// What a thread is inside of. Trivially destructible: nothing of numsan's runs at thread exit.
struct ThreadState {
    static constexpr int kMaxNodes = 64;
    struct Node {
        char name[96];
        NodeSeq sequence;
        uint64_t thread;
        int64_t graph_task;
        bool accumulates;  ///< adds to a leaf's gradient
    };
    Node nodes[kMaxNodes];
    int node_depth = 0;  ///< may exceed kMaxNodes; the rest has no name
    int optimizer_depth = 0;
    OptimizerRounds::Step optimizer_step;
    int loader_depth = 0;
    int ignore_depth = 0;
    ThreadRanges ranges;
    OpSeq last_parameter_read = OpSeq::None;
    bool after_compiled = false;
    bool ended_step = false;                     ///< an op of the thread did, for who asks
    const char* unseen = nullptr;                ///< why an output of the thread's next op cannot be looked at
    std::vector<const void*>* pinned = nullptr;  ///< storages of a look back, until the event has been dealt with
    Break* due = nullptr;                        ///< with the option `break`: owned, where the program stops next
    bool busy = false;                           ///< numsan's own code runs: its ops are not the program's

    /// The innermost node; null outside every node. Of nodes that are too deep, the last that has a name.
    const Node* node() const {
        return node_depth > 0 ? &nodes[(node_depth < kMaxNodes ? node_depth : kMaxNodes) - 1] : nullptr;
    }
    /// Whether the thread is inside the node that adds to a leaf's gradient.
    bool accumulates() const { return node_depth > 0 && node_depth <= kMaxNodes && nodes[node_depth - 1].accumulates; }
    void begin_node(const NodeEvent& event) noexcept;
    void end_node() noexcept;
    /// The list for storages of a look back. Throws std::bad_alloc.
    std::vector<const void*>& pins() {
        if (pinned == nullptr) pinned = new std::vector<const void*>;
        return *pinned;
    }
};

/// Of the calling thread.
ThreadState& this_thread() noexcept;

/// While this lives, ops of the calling thread are numsan's own.
class BusyThread {
  public:
    BusyThread() noexcept : was_(this_thread().busy) { this_thread().busy = true; }
    ~BusyThread() { this_thread().busy = was_; }
    BusyThread(const BusyThread&) = delete;
    BusyThread& operator=(const BusyThread&) = delete;

  private:
    const bool was_;
};

}  // namespace numsan
