#include "interpose/torch/autograd_scopes.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cstring>
#include <memory>

#include "interpose/torch/autograd_calls.h"
#include "interpose/torch/describe/device_queue_of.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/hook/dispatch_hook.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/listeners.h"

namespace numsan {
namespace {

constexpr int kMaxGradients = 32;

NodeEvent event_of(uint64_t sequence, uint64_t forward_thread, const char* name) {
    NodeEvent event{};
    event.name = name;
    event.sequence = sequence;
    event.forward_thread = forward_thread;
    event.graph_task = torch::autograd::get_current_graph_task_id();
    return event;
}

/// The gradients that a node is about to add to a leaf's, one after the other.
class Incoming {
  public:
    void add(const at::Tensor& gradient) {
        if (count_ == kMaxGradients || !gradient.defined() || !view_of(gradient, 0, views_[count_])) return;
        views_[count_].argument = static_cast<int16_t>(count_);
        ++count_;
    }
    void show(NodeEvent& event) const {
        event.inputs = views_;
        event.input_count = count_;
    }

  private:
    TensorView views_[kMaxGradients];
    int count_ = 0;
};

/// The node is about to add to a leaf's gradient: which leaf, and what is added.
void show_leaf(const torch::autograd::AccumulateGrad& node, const Incoming& gradients, const CoreApi& core,
               NodeEvent& event) {
    TensorView variable;
    if (node.variable.defined() && view_of(node.variable, kLeaf, variable)) {
        event.variable = &variable;
        const c10::Device device = node.variable.device();
        if (!device.is_cpu()) event.queue = device_queue_of(device.type(), device.index());
    }
    gradients.show(event);
    core.node_begin(&event);
}

void begin_leaf(const torch::autograd::AccumulateGrad& node, const torch::autograd::variable_list& gradients,
                const CoreApi& core) {
    NodeEvent event = event_of(node.sequence_nr(), node.thread_id(), "torch::autograd::AccumulateGrad");
    Incoming incoming;
    for (const at::Tensor& gradient : gradients) incoming.add(gradient);
    show_leaf(node, incoming, core, event);
}

void node_begin(const at::RecordFunction& fn, const CoreApi& core) {
    NodeEvent event = event_of(static_cast<uint64_t>(fn.seqNr()), fn.forwardThreadId(), fn.name());
    if (event.sequence == ~uint64_t(0) && std::strstr(event.name, "AccumulateGrad") != nullptr) {
        const auto node = torch::autograd::get_current_node();
        if (const auto* accumulate = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get())) {
            Incoming incoming;
            for (const c10::IValue& value : fn.inputs()) {
                if (value.isTensor()) incoming.add(value.toTensor());
            }
            return show_leaf(*accumulate, incoming, core, event);
        }
    }
    core.node_begin(&event);
}

std::unique_ptr<at::ObserverContext> scope_begins(const at::RecordFunction& fn) {
    const CoreApi* core = core_api();
    if (core == nullptr) return nullptr;
    show_ops_of_this_thread();
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
        node_begin(fn, *core);
    } else {
        core->scope_begin(fn.name());
    }
    return nullptr;
}

void scope_ends(const at::RecordFunction& fn, at::ObserverContext*) {
    const CoreApi* core = core_api();
    if (core == nullptr) return;
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
        core->node_end();
    } else {
        core->scope_end(fn.name());
    }
}

/// One callback for both: autograd has torch copy all callbacks of a process some times for each node.
void listen_to_all() {
    listen(at::RecordFunctionCallback(scope_begins, scope_ends)
               .needsInputs(true)
               .scopes({at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

}  // namespace

void install_autograd_scopes(const CoreApi& core) {
    if (!replace_autograd_calls(core, {scope_begins, scope_ends, begin_leaf}, listen_to_all)) listen_to_all();
}

}  // namespace numsan
