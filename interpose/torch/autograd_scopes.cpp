#include "interpose/torch/autograd_scopes.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cstring>
#include <memory>

#include "interpose/torch/device_queue_of.h"
#include "interpose/torch/dispatch_hook.h"
#include "interpose/torch/listeners.h"
#include "interpose/torch/tensor_view_of.h"

namespace numsan {
namespace {

constexpr int kMaxGradients = 32;

std::unique_ptr<at::ObserverContext> node_begin(const at::RecordFunction& fn) {
    const CoreApi* core = core_api();
    if (core == nullptr) return nullptr;
    show_ops_of_this_thread();
    NodeEvent event{};
    TensorView inputs[kMaxGradients];
    TensorView variable;
    event.name = fn.name();
    event.sequence = static_cast<uint64_t>(fn.seqNr());
    event.forward_thread = fn.forwardThreadId();
    event.graph_task = torch::autograd::get_current_graph_task_id();
    for (const c10::IValue& value : fn.inputs()) {
        if (event.input_count == kMaxGradients) break;
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        if (view_of(value.toTensor(), 0, inputs[event.input_count])) {
            inputs[event.input_count].argument = static_cast<int16_t>(event.input_count);
            ++event.input_count;
        }
    }
    event.inputs = inputs;
    if (event.sequence == ~uint64_t(0) && std::strstr(event.name, "AccumulateGrad") != nullptr) {
        const auto node = torch::autograd::get_current_node();
        if (const auto* accumulate = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get())) {
            if (accumulate->variable.defined() && view_of(accumulate->variable, kLeaf, variable)) {
                event.variable = &variable;
                const c10::Device device = accumulate->variable.device();
                if (!device.is_cpu()) event.queue = device_queue_of(device.type(), device.index());
            }
        }
    }
    core->node_begin(&event);
    return nullptr;
}

void node_end(const at::RecordFunction&, at::ObserverContext*) {
    if (const CoreApi* core = core_api()) core->node_end();
}

std::unique_ptr<at::ObserverContext> scope_begin(const at::RecordFunction& fn) {
    const CoreApi* core = core_api();
    if (core == nullptr) return nullptr;
    show_ops_of_this_thread();
    core->scope_begin(fn.name());
    return nullptr;
}

void scope_end(const at::RecordFunction& fn, at::ObserverContext*) {
    if (const CoreApi* core = core_api()) core->scope_end(fn.name());
}

}  // namespace

void install_autograd_scopes() {
    listen(at::RecordFunctionCallback(node_begin, node_end)
               .needsInputs(true)
               .scopes({at::RecordScope::BACKWARD_FUNCTION}));
    listen(at::RecordFunctionCallback(scope_begin, scope_end).scopes({at::RecordScope::USER_SCOPE}));
}

}  // namespace numsan
