// What a session keeps of each thread.
#pragma once

#include <cstdint>
#include <vector>

#include "host/session/session.h"

namespace numsan {

/// What this thread is inside of. Trivially destructible: nothing of ours runs at thread exit.
struct Session::Thread {
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
    int64_t last_parameter_read = -1;
    bool after_compiled = false;
    const char* unseen = nullptr;                ///< why an output of the op that is told of next cannot be looked at
    std::vector<const void*>* pinned = nullptr;  ///< storages of a look back, until the event has been dealt with
    bool busy = false;                           ///< our own code runs: what it does is not the program's
};

}  // namespace numsan
