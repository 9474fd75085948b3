#include "host/event/look_back.h"

#include <map>
#include <memory>
#include <vector>

#include "host/event/thread_state.h"

namespace numsan {
namespace {

/// Whether no operator has written the storage since op `seq`, as far as is remembered.
bool unchanged(const Lineage& lineage, const TensorView& tensor, OpSeq seq) {
    return lineage.written_at(tensor.storage) <= seq;
}

}  // namespace

void LookBack::unpin(ThreadState& thread, const OpLog& log) noexcept {
    if (thread.pinned == nullptr || !log.usable()) return;
    const std::unique_ptr<std::vector<const void*>> pinned(thread.pinned);
    thread.pinned = nullptr;
    thread.busy = true;
    for (const void* storage : *pinned) log.storages().unpin(storage);
    thread.busy = false;
}

bool LookBack::is_bad(const TensorView& tensor) const { return scannable(tensor) && scanner_.range(tensor).suspicious; }

void LookBack::look_behind(const OpEvent& event, OutputSet bad, int64_t step, Outcome& outcome) {
    const bool root = is_root(event);
    const bool leaves = root || event.op->op_class == OpClass::HostRead || event.op->op_class == OpClass::Collective;
    if (!bad.any() && !leaves) return;
    for (int32_t i = 0; bad.any() && i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (is_parameter(output) && (output.flags & kWritten) != 0) tier_.alarm(step);
    }
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (written_by(event, input) || !is_bad(input)) continue;
        if (root) tier_.alarm(step);
        if (verdict_.knows(input)) continue;
        if (leaves) tier_.alarm(step);
        look_back(outcome);
        return;
    }
}

void LookBack::look_behind(const NodeEvent& event, int64_t step, Outcome& outcome) {
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (!is_bad(event.inputs[i])) continue;
        tier_.alarm(step);
        if (verdict_.knows(event.inputs[i])) continue;
        look_back(outcome);
        return;
    }
}

/// Reads what is left of the outputs in the log, oldest first, and hands their ops to the verdict.
void LookBack::look_back(Outcome& outcome) {
    std::vector<const void*>& pins = this_thread().pins();
    log_.take([&](const std::vector<LoggedOp*>& ops) {
        std::map<const void*, OpSeq> last_writes;
        for (const LoggedOp* op : ops) {
            for (int32_t i = 0; i < op->event.output_count; ++i) {
                if (!is_view(op->event, op->outputs[i])) last_writes[op->outputs[i].storage] = op->context.seq;
            }
        }
        for (LoggedOp* op : ops) read_what_is_left(*op, last_writes, pins);
        past_.judge(ops, outcome);
    });
}

void LookBack::read_what_is_left(LoggedOp& op, const std::map<const void*, OpSeq>& last_writes,
                                 std::vector<const void*>& pinned) {
    const OpSeq seq = op.context.seq;
    const auto look = [&](TensorView& tensor) {
        if (!scannable(tensor)) return false;
        const void* data = nullptr;
        int64_t bytes = 0;
        pinned.reserve(pinned.size() + 1);
        if (log_.storages().pin(tensor.storage, &data, &bytes)) {
            pinned.push_back(tensor.storage);
            const auto written = last_writes.find(tensor.storage);
            const bool same_memory = data == tensor.storage_data && bytes >= tensor.storage_bytes;
            const bool same_write = written == last_writes.end() || written->second <= seq;
            if (same_memory && same_write && unchanged(lineage_, tensor, seq)) return true;
        }
        tensor.flags = (tensor.flags & ~uint32_t(kScannable)) | kUnavailable;
        return false;
    };
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        if (look(op.outputs[i]) && op.unread.contains(i) && scanner_.range(op.outputs[i]).suspicious) op.bad.add(i);
    }
    op.context.unavailable = op.dropped;
    for (int32_t i = 0; i < op.event.input_count; ++i) {
        if (written_by(op.event, op.inputs[i])) continue;
        look(op.inputs[i]);
        if ((op.inputs[i].flags & kUnavailable) != 0) ++op.context.unavailable;
    }
}

}  // namespace numsan
