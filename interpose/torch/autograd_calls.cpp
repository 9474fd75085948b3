#include "interpose/torch/autograd_calls.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "interpose/torch/hook/dispatch_hook.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/listeners.h"

namespace numsan {
namespace {

using at::RecordScope;
using at::StepCallbacks;
using torch::autograd::AccumulateGrad;
using torch::autograd::Node;
using torch::autograd::variable_list;

using NodeCallbacks = std::optional<StepCallbacks> (*)(RecordScope);
using ScopeCallbacks = StepCallbacks (*)(RecordScope);
/// A member function, as its callers see it.
using Accumulate = variable_list (*)(AccumulateGrad*, variable_list&&);

/// Another torch may have others by the same names: what a function returns is not part of its symbol.
constexpr bool kTypesAreKnown =
    std::is_same_v<decltype(&at::getStepCallbacksUnlessEmpty), NodeCallbacks> &&
    std::is_same_v<decltype(&at::getStepCallbacks), ScopeCallbacks> &&
    std::is_same_v<decltype(&AccumulateGrad::apply), variable_list (AccumulateGrad::*)(variable_list&&)>;

// libnumsan.so tells operators from the rest by this number.
static_assert(static_cast<uint8_t>(RecordScope::FUNCTION) == 0);

AutogradListener g_listener;
NodeCallbacks g_own_node_callbacks = nullptr;
ScopeCallbacks g_own_scope_callbacks = nullptr;
Accumulate g_own_accumulate = nullptr;
const void* g_accumulate_seen = nullptr;
ReplaceTorchCalls g_replace = nullptr;
void (*g_unreached)() = nullptr;
std::atomic<bool> g_scope_asked{false};
std::atomic<bool> g_node_asked{false};

/// Of the calling thread.
struct Leaves {
    const Node* due = nullptr;     ///< is about to be run: accumulate() tells of it
    const Node* inside = nullptr;  ///< is being run
};
thread_local constinit Leaves t_leaves;

bool listens(RecordScope scope) {
    return (scope == RecordScope::BACKWARD_FUNCTION || scope == RecordScope::USER_SCOPE) && core_api() != nullptr &&
           at::isRecordFunctionEnabled();
}

void add_listener(StepCallbacks& callbacks) { callbacks.callbacks_.push_back({g_listener.begin, g_listener.end}); }

/// What a call of the node's apply() runs, from its table of virtual functions.
const void* apply_of(const Node& node) {
    static const size_t offset = [] {
        const auto apply = &AccumulateGrad::apply;
        uintptr_t word = 0;  // of a virtual function: one more than its place in bytes
        std::memcpy(&word, &apply, sizeof word);
        return static_cast<size_t>(word - 1);
    }();
    const char* table = nullptr;
    std::memcpy(&table, &node, sizeof table);
    const void* function = nullptr;
    std::memcpy(&function, table + offset, sizeof function);
    return function;
}

/// Whether the engine is about to run a node that accumulate() will tell of. While one of those runs, a node that is
/// run is one that its hooks run themselves, which is not the thread's current one.
bool leaf_is_due(const Node* node) {
    if (node == nullptr || node == t_leaves.inside || apply_of(*node) != g_accumulate_seen) return false;
    t_leaves.due = node;
    return true;
}

std::optional<StepCallbacks> node_callbacks(RecordScope scope) {
    std::optional<StepCallbacks> callbacks = g_own_node_callbacks(scope);
    if (!listens(scope)) return callbacks;
    bool gradients = false;
    if (scope == RecordScope::BACKWARD_FUNCTION) {
        if (!g_node_asked.load(std::memory_order_relaxed)) g_node_asked.store(true, std::memory_order_relaxed);
        const auto node = torch::autograd::get_current_node();  // shared_ptr or, since torch 2.13, intrusive_ptr
        if (leaf_is_due(node.get())) return callbacks;
        gradients = node != nullptr && node->sequence_nr() == ~uint64_t(0);  // as those of leaves are numbered
    }
    if (!callbacks.has_value()) callbacks.emplace(at::RecordFunction::currentThreadId(), scope);
    callbacks->needs_inputs_ = callbacks->needs_inputs_ || gradients;
    add_listener(*callbacks);
    return callbacks;
}

StepCallbacks scope_callbacks(RecordScope scope) {
    StepCallbacks callbacks = g_own_scope_callbacks(scope);
    if (!g_scope_asked.load(std::memory_order_relaxed)) g_scope_asked.store(true, std::memory_order_relaxed);
    if (listens(scope)) add_listener(callbacks);
    return callbacks;
}

void give_back() {
    TorchCalls own{};
    g_replace(TorchCalls{}, own);
}

class InsideLeaf {
  public:
    InsideLeaf(const Node* node, const CoreApi& core) : core_(core), before_(std::exchange(t_leaves.inside, node)) {}
    ~InsideLeaf() {
        t_leaves.inside = before_;
        core_.node_end();
    }
    InsideLeaf(const InsideLeaf&) = delete;
    InsideLeaf& operator=(const InsideLeaf&) = delete;

  private:
    const CoreApi& core_;
    const Node* before_;
};

variable_list accumulate(AccumulateGrad* node, variable_list&& gradients) {
    const bool due = std::exchange(t_leaves.due, nullptr) == node;
    const CoreApi* core = core_api();
    if (core == nullptr || !due) {
        static std::atomic<bool> told{false};
        if (core != nullptr && !g_node_asked.load() && !told.exchange(true)) {
            give_back();
            g_unreached();
        }
        return g_own_accumulate(node, std::move(gradients));
    }
    show_ops_of_this_thread();
    try {
        g_listener.begin_leaf(*node, gradients, *core);
    } catch (const std::exception&) {
        core->fail("a node of autograd could not be described");
        return g_own_accumulate(node, std::move(gradients));
    }
    const InsideLeaf inside(node, *core);
    return g_own_accumulate(node, std::move(gradients));
}

}  // namespace

bool replace_autograd_calls(const CoreApi& core, const AutogradListener& listener, void (*unreached)()) {
    if (!kTypesAreKnown || core.replace_torch_calls == nullptr) return false;
    g_listener = listener;
    g_unreached = unreached;
    g_replace = core.replace_torch_calls;
    TorchCalls own{};
    if (!g_replace(TorchCalls{}, own)) return false;
    g_own_node_callbacks = reinterpret_cast<NodeCallbacks>(own.node_callbacks);
    g_own_scope_callbacks = reinterpret_cast<ScopeCallbacks>(own.scope_callbacks);
    g_own_accumulate = reinterpret_cast<Accumulate>(own.accumulate);
    g_accumulate_seen = own.accumulate_seen;
    const TorchCalls ours{reinterpret_cast<void*>(node_callbacks), reinterpret_cast<void*>(scope_callbacks),
                          reinterpret_cast<void*>(accumulate), nullptr};
    if (!g_replace(ours, own)) return false;
    note_as_ours(listener.begin);
    { const at::RecordFunction question(RecordScope::USER_SCOPE); }  // which never begins
    if (g_scope_asked.load()) return true;
    give_back();
    return false;
}

}  // namespace numsan
