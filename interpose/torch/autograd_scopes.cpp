#include "interpose/torch/autograd_scopes.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cstring>
#include <memory>

#include "interpose/torch/describe/device_queue_of.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/hook/dispatch_hook.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/listeners.h"

namespace numsan {
namespace {

constexpr int kMaxGradients = 32;

/// The node is about to add to a leaf's gradient: which leaf, and what is added.
void show_leaf(const at::RecordFunction& fn, const torch::autograd::AccumulateGrad& node, const CoreApi& core,
               NodeEvent& event) {
    TensorView inputs[kMaxGradients];
    TensorView variable;
    if (node.variable.defined() && view_of(node.variable, kLeaf, variable)) {
        event.variable = &variable;
        const c10::Device device = node.variable.device();
        if (!device.is_cpu()) event.queue = device_queue_of(device.type(), device.index());
    }
    for (const c10::IValue& value : fn.inputs()) {
        if (event.input_count == kMaxGradients) break;
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        if (view_of(value.toTensor(), 0, inputs[event.input_count])) {
            inputs[event.input_count].argument = static_cast<int16_t>(event.input_count);
            ++event.input_count;
        }
    }
    event.inputs = inputs;
    core.node_begin(&event);
}

void node_begin(const at::RecordFunction& fn, const CoreApi& core) {
    NodeEvent event{};
    event.name = fn.name();
    event.sequence = static_cast<uint64_t>(fn.seqNr());
    event.forward_thread = fn.forwardThreadId();
    event.graph_task = torch::autograd::get_current_graph_task_id();
    if (event.sequence == ~uint64_t(0) && std::strstr(event.name, "AccumulateGrad") != nullptr) {
        const auto node = torch::autograd::get_current_node();
        if (const auto* accumulate = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get()))
            return show_leaf(fn, *accumulate, core, event);
    }
    core.node_begin(&event);
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& fn) {
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

void end(const at::RecordFunction& fn, at::ObserverContext*) {
    const CoreApi* core = core_api();
    if (core == nullptr) return;
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
        core->node_end();
    } else {
        core->scope_end(fn.name());
    }
}

}  // namespace

/// One callback for both: autograd has torch copy all callbacks of a process some times for each node.
void install_autograd_scopes() {
    listen(at::RecordFunctionCallback(begin, end)
               .needsInputs(true)
               .scopes({at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

}  // namespace numsan
