#include "interpose/torch/hook/op_call.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <cmath>

#include "interpose/torch/describe/device_queue_of.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/describe/thread_pool.h"
#include "interpose/torch/hook/hook_state.h"

namespace numsan {
namespace {

constexpr uint32_t kRead = kScannable | kLater;

}  // namespace

void OpCall::number(double value) {
    // Beyond every float16 value and every bfloat16 one that a computation means: the program wrote "infinity".
    infinite_scalar_ = infinite_scalar_ || (!(std::fabs(value) < 1e37) && !std::isnan(value));
    keep(value);
}

void OpCall::number(const c10::Scalar& value) {
    if (value.isSymbolic()) return;
    if (value.isFloatingPoint()) {
        number(value.toDouble());
    } else if (value.isIntegral(/*includeBool=*/false)) {
        number(value.toLong());
    }
}

namespace {

/// Without gradients there is no node that made it.
bool is_leaf(const at::Tensor& tensor, const TensorView& view) {
    return (view.flags & kRequiresGrad) == 0 || tensor.is_leaf();
}

}  // namespace

// Describing a tensor is short, and called for every one of every op: within its callers.
[[gnu::flatten]] void OpCall::operand(const at::Tensor& tensor, size_t position, bool internal) {
    TensorView& view = inputs_[input_count_];
    if (!view_of(tensor, 0, view)) return;
    if ((view.flags & kRequiresGrad) != 0 && tensor.is_leaf()) view.flags |= kLeaf;
    if (internal) view.flags &= ~kRead;
    view.argument = static_cast<int16_t>(position);
    if (view.device != Device::Cpu && on_device_ == nullptr) on_device_ = tensor.unsafeGetTensorImpl();
    ++input_count_;
}

/// An op in place has its operand for an output; operands are shown after the op ran, too.
bool OpCall::view_of_output(const at::Tensor& tensor, uint32_t flag, TensorView& view) const {
    constexpr int32_t kLooked = 4;
    const void* impl = tensor.unsafeGetTensorImpl();
    for (int32_t i = 0; op_.info.mutates && i < std::min(input_count_, kLooked); ++i) {
        if (inputs_[i].impl != impl) continue;
        view = inputs_[i];
        view.flags = (view.flags & ~uint32_t(kLeaf)) | flag;
        return true;
    }
    return view_of(tensor, flag, view);
}

[[gnu::flatten]] void OpCall::output(const at::Tensor& tensor, uint32_t flag, size_t position) {
    const void* impl = tensor.unsafeGetTensorImpl();
    if (flag == kReturned) returned_count_ = output_count_ + 1;
    for (int32_t i = 0; flag == kWritten && i < std::min(returned_count_, output_count_); ++i) {
        if (outputs_[i].impl != impl) continue;
        outputs_[i].flags |= flag;
        if (is_leaf(tensor, outputs_[i])) outputs_[i].flags |= kLeaf;
        return;
    }
    TensorView& view = outputs_[output_count_];
    if (!view_of_output(tensor, flag, view)) {
        skip(tensor);
        return;
    }
    if (tensor.unsafeGetTensorImpl()->is_contiguous()) view.flags |= kContiguous;
    if (flag == kWritten && is_leaf(tensor, view)) view.flags |= kLeaf;
    if (flag == kReturned && position < 64 && (op_.internal_returns >> position & 1) != 0) view.flags &= ~kRead;
    view.argument = static_cast<int16_t>(position);
    if (view.device != Device::Cpu) on_device_ = tensor.unsafeGetTensorImpl();
    ++output_count_;
}

/// Says that an output is not looked at, and why. Never on the path of plain tensors.
__attribute__((cold, noinline)) void OpCall::skip(const at::Tensor& tensor) {
    const CoreApi* core = core_api();
    if (core == nullptr || inner_ops_shown_) return;
    if (op_.info.op_class == OpClass::Allocation || op_.info.op_class == OpClass::Collective) return;
    const void** end = skipped_ + skipped_count_;
    if (std::find(skipped_, end, tensor.unsafeGetTensorImpl()) != end) return;
    if (skipped_count_ < kMaxSkipped) skipped_[skipped_count_++] = tensor.unsafeGetTensorImpl();
    core->skipped(why_not_viewed(tensor));
}

/// What a device's op refused shows where the program waits for it, not here.
[[gnu::cold]] void OpCall::report_failure(const CoreApi& core) {
    if (on_device_ != nullptr) return;
    OpEvent event{};
    event.op = &op_.info;
    event.inputs = inputs_;
    event.input_count = input_count_;
    event.grad_enabled = places_.grad_enabled();
    event.forward_sequence = ~uint64_t(0);
    event.graph_task = torch::autograd::get_current_graph_task_id();
    core.op_failed(&event);
}

uint64_t OpCall::node_of(uint64_t sequence) const {
    if (!places_.grad_enabled()) return ~uint64_t(0);
    return sequence == kLastNode ? at::sequence_number::peek() - 1 : sequence;
}

void OpCall::report(const CoreApi& core, uint64_t sequence) {
    OpEvent event;
    event.op = &op_.info;
    event.inputs = inputs_;
    event.outputs = outputs_;
    event.input_count = input_count_;
    event.output_count = output_count_;
    event.grad_enabled = places_.grad_enabled();
    event.thread = event.grad_enabled ? places_.number() : 0;
    event.forward_sequence = node_of(sequence);
    event.infinite_scalar = infinite_scalar_;
    event.graph_task = torch::autograd::get_current_graph_task_id();
    event.autograd_facts = autograd_facts_of;
    event.scalar_count = scalar_count_;
    event.scalars = scalars_;
    event.inner_ops_shown = inner_ops_shown_;
    event.on_device = on_device_ != nullptr;
    event.communicator = communicator_;
    if (event.on_device) event.queue = device_queue_of(on_device_->device_type(), on_device_->device().index());
    if (op_.element_wise && output_count_ > 0 && outputs_[0].device == Device::Cpu)
        note_pool_use(op_, outputs_[0].numel);
    core.op_end(&event);
    if (core.after_op != nullptr) [[unlikely]]
        core.after_op();
}

}  // namespace numsan
