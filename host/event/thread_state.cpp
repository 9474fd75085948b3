#include "host/event/thread_state.h"

#include <cstring>

namespace numsan {

/// Not inlined: the compiler would rather look up where a thread's variables lie again and again than remember it.
[[gnu::noinline]] ThreadState& this_thread() noexcept {
    static thread_local constinit ThreadState mine{};
    return mine;
}

void ThreadState::begin_node(const NodeEvent& event) noexcept {
    if (++node_depth > kMaxNodes) return;
    Node& begun = nodes[node_depth - 1];
    const size_t length = strnlen(event.name, sizeof begun.name - 1);
    std::memcpy(begun.name, event.name, length);
    begun.name[length] = '\0';
    begun.accumulates = event.variable != nullptr;
    begun.sequence = NodeSeq{event.sequence};
    begun.thread = event.forward_thread;
    begun.graph_task = event.graph_task;
}

void ThreadState::end_node() noexcept {
    if (node_depth <= 0) return;
    constexpr char kCompiled[] = "CompiledFunction";
    if (node_depth <= kMaxNodes) {
        const Node& ended = nodes[node_depth - 1];
        if (!ended.accumulates) after_compiled = std::strncmp(ended.name, kCompiled, sizeof kCompiled - 1) == 0;
    }
    --node_depth;
}

}  // namespace numsan
