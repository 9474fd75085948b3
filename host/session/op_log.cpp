#include "host/session/op_log.h"

#include <algorithm>
#include <cstring>

namespace numsan {
namespace {

/// Copies `from`, its sizes and strides into `dims`. What has too many dimensions cannot be looked at later.
void copy_view(TensorView& to, const TensorView& from, int64_t*& dims) {
    to = from;
    if (from.ndim > LoggedOp::kMaxDims) {
        to.flags &= ~uint32_t(kScannable);
        to.ndim = 0;
    }
    std::copy_n(from.sizes, to.ndim, dims);
    to.sizes = dims;
    dims += to.ndim;
    std::copy_n(from.strides, to.ndim, dims);
    to.strides = dims;
    dims += to.ndim;
}

}  // namespace

bool OpLog::add(const OpEvent& event, const OpContext& context, const ForwardMap::Record& made, bool makes_node,
                uint64_t unread) {
    if (event.output_count > LoggedOp::kMaxOutputs) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (end_ - begin_ == kOps) unwatch(ops_[begin_++ % kOps]);
    LoggedOp& op = ops_[end_ % kOps];
    op.event = event;
    op.context = context;
    op.made = made;
    op.makes_node = makes_node;
    op.unread = unread;
    op.event.kin = nullptr;
    op.context.kin = nullptr;
    op.event.scalar_count = std::min<int32_t>(event.scalar_count, std::size(op.scalars));
    std::copy_n(event.scalars, op.event.scalar_count, op.scalars);
    op.event.scalars = op.scalars;
    if (context.node != nullptr) {
        const size_t length = strnlen(context.node, sizeof op.node - 1);
        std::memcpy(op.node, context.node, length);
        op.node[length] = '\0';
        op.context.node = op.node;
    }
    int64_t* dims = op.dims;
    op.event.input_count = std::min(event.input_count, LoggedOp::kMaxInputs);
    for (int32_t i = 0; i < op.event.input_count; ++i) copy_view(op.inputs[i], event.inputs[i], dims);
    for (int32_t i = 0; i < event.output_count; ++i) copy_view(op.outputs[i], event.outputs[i], dims);
    op.event.inputs = op.inputs;
    op.event.outputs = op.outputs;
    for (int32_t i = 0; i < op.event.input_count; ++i) storages_->watch(op.inputs[i].storage);
    for (int32_t i = 0; i < event.output_count; ++i) storages_->watch(op.outputs[i].storage);
    ++end_;
    return true;
}

void OpLog::unwatch(const LoggedOp& op) {
    for (int32_t i = 0; i < op.event.input_count; ++i) storages_->unwatch(op.inputs[i].storage);
    for (int32_t i = 0; i < op.event.output_count; ++i) storages_->unwatch(op.outputs[i].storage);
}

}  // namespace numsan
