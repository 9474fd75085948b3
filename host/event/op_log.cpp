#include "host/event/op_log.h"

#include <algorithm>
#include <cstring>

namespace numsan {
namespace {

/// Copies `from`, its sizes and strides into `dims`. What has too many dimensions cannot be looked at later.
void copy_view(TensorView& to, const TensorView& from, int64_t*& dims) {
    to = from;
    to.integer = IntegerType::None;  // the elements cannot be read through the copy
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

LoggedOp::LoggedOp(const LoggedOp& other) noexcept {
    // NOLINTNEXTLINE(bugprone-undefined-memory-manipulation): it is but for this constructor
    std::memcpy(static_cast<void*>(this), &other, sizeof *this);
    event.inputs = inputs;
    event.outputs = outputs;
    event.scalars = scalars;
    if (context.node != nullptr) context.node = node;
    const auto move_dims = [&](TensorView* views, int32_t count) {
        for (int32_t i = 0; i < count; ++i) {
            views[i].sizes = dims + (views[i].sizes - other.dims);
            views[i].strides = dims + (views[i].strides - other.dims);
        }
    };
    move_dims(inputs, event.input_count);
    move_dims(outputs, event.output_count);
}

void OpLog::use(const StorageApi& storages) {
    ring_ = std::make_unique<Ring>(kOps, Ring::Pages::Small);
    spare_ = std::make_unique<Ring>(kOps, Ring::Pages::Small);
    watched_ = std::make_unique<HugeArray<Watched>>(kOps, HugeArray<Watched>::Pages::Small);
    storages_.store(&storages, std::memory_order_release);
}

void OpLog::add(const OpEvent& event, const OpContext& context, const ForwardMap::Record& made, bool makes_node,
                OutputSet unread, LoggedOp::InGraph graph) {
    const int32_t count = event.output_count;
    const bool lists = is_over_lists(event);
    if (count <= (lists ? 1 : LoggedOp::kMaxOutputs)) {
        add_one(event, context, made, makes_node, unread, graph);
        return;
    }
    OpContext members = context;
    for (int32_t k = 0; k < count; ++k) {
        const bool is_unread = unread.contains(k);
        if (!is_unread && graph.capture == 0) continue;  // in a graph it is known who wrote last
        TensorView operands[LoggedOp::kMaxInputs];
        OpEvent one = event;
        one.outputs = event.outputs + k;
        one.output_count = 1;
        if (lists) {
            members.autograd_facts = nullptr;  // counted otherwise
            one.inputs = operands;
            one.input_count = 0;
            for (int32_t i = k; i < event.input_count && one.input_count < LoggedOp::kMaxInputs; i += count) {
                operands[one.input_count++] = event.inputs[i];
            }
        }
        add_one(one, members, made, makes_node, is_unread ? OutputSet::only(0) : OutputSet{}, graph);
        if (is_unread) ++graph.first;
    }
}

void OpLog::add_one(const OpEvent& event, const OpContext& context, const ForwardMap::Record& made, bool makes_node,
                    OutputSet unread, LoggedOp::InGraph graph) {
    const StorageApi& storages = this->storages();
    const int32_t inputs = std::min(event.input_count, LoggedOp::kMaxInputs);
    for (int32_t i = 0; i < inputs; ++i) storages.watch(event.inputs[i].storage);
    for (int32_t i = 0; i < event.output_count; ++i) storages.watch(event.outputs[i].storage);
    Watched evicted;
    evicted.count = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        Watched& watched = (*watched_)[end_ % kOps];
        if (end_ - begin_ == kOps) {
            evicted = watched;
            ++begin_;
        }
        LoggedOp& op = (*ring_)[end_++ % kOps];
        watched.count = 0;
        for (int32_t i = 0; i < inputs; ++i) watched.storages[watched.count++] = event.inputs[i].storage;
        for (int32_t i = 0; i < event.output_count; ++i) watched.storages[watched.count++] = event.outputs[i].storage;
        op.event = event;
        op.context = context;
        op.made = made;
        op.makes_node = makes_node;
        op.unread = unread;
        op.graph = graph;
        op.bad = {};
        op.dropped_out = false;
        op.dropped = event.input_count - inputs;
        op.event.autograd_facts = nullptr;
        op.context.autograd_facts = nullptr;
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
        op.event.input_count = inputs;
        for (int32_t i = 0; i < inputs; ++i) copy_view(op.inputs[i], event.inputs[i], dims);
        keep_autograd_facts(op.inputs, inputs, context);
        for (int32_t i = 0; i < event.output_count; ++i) copy_view(op.outputs[i], event.outputs[i], dims);
        op.event.inputs = op.inputs;
        op.event.outputs = op.outputs;
    }
    for (int32_t i = 0; i < evicted.count; ++i) storages.unwatch(evicted.storages[i]);
}

std::vector<LoggedOp*> OpLog::swap() {
    std::vector<LoggedOp*> ops;
    ops.reserve(kOps);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (; begin_ != end_; ++begin_) ops.push_back(&(*ring_)[begin_ % kOps]);
    std::swap(ring_, spare_);
    return ops;
}

void OpLog::copy(uint64_t begin, uint64_t end, std::deque<std::pair<uint64_t, LoggedOp>>& to) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (uint64_t n = std::max(begin, begin_); n < std::min(end, end_); ++n) {
        const LoggedOp& op = (*ring_)[n % kOps];
        if (!op.dropped_out) to.emplace_back(n, op);
    }
}

void OpLog::storages_of(const LoggedOp& op, std::vector<const void*>& storages) {
    for (int32_t i = 0; i < op.event.input_count; ++i) storages.push_back(op.inputs[i].storage);
    for (int32_t i = 0; i < op.event.output_count; ++i) storages.push_back(op.outputs[i].storage);
}

void OpLog::unwatch(const LoggedOp& op) {
    std::vector<const void*> watched;
    if (!op.dropped_out) storages_of(op, watched);
    for (const void* storage : watched) storages().unwatch(storage);
}

}  // namespace numsan
