// The look back: something bad has shown that no op is known to have made, as the tier did not read every output.
#include <map>
#include <set>
#include <vector>

#include "host/session/session.h"

namespace numsan {

/// What was borrowed goes back when no lock of ours is held.
class Session::Borrowed {
  public:
    explicit Borrowed(const StorageApi& storages) : storages_(storages) {}
    ~Borrowed() {
        for (const void* storage : held_) storages_.give_back(storage);
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    bool add(const void* storage) {
        held_.reserve(held_.size() + 1);
        if (!storages_.borrow(storage)) return false;
        held_.push_back(storage);
        return true;
    }

  private:
    const StorageApi& storages_;
    std::vector<const void*> held_;
};

namespace {

/// Whether the storage still holds what it held when op `seq` had run.
bool unchanged(const Lineage& lineage, const TensorView& tensor, int64_t seq) {
    Lineage::Record last;
    return !lineage.find(tensor.storage, last) || last.seq <= seq;
}

/// Ops whose results are gone, and which something bad was computed from by way of results that are gone.
std::set<const LoggedOp*> suspects_of(const std::vector<LoggedOp*>& ops) {
    std::map<const void*, const LoggedOp*> writer;                       // of each storage, up to here
    std::map<const LoggedOp*, std::vector<const LoggedOp*>> behind_gone;  // who wrote the operands that are gone
    std::set<const LoggedOp*> suspects;
    for (const LoggedOp* op : ops) {
        for (int32_t i = 0; i < op->event.input_count; ++i) {
            if ((op->inputs[i].flags & kGone) == 0) continue;
            if (const auto it = writer.find(op->inputs[i].storage); it != writer.end())
                behind_gone[op].push_back(it->second);
        }
        for (int32_t i = 0; i < op->event.output_count; ++i) writer[op->outputs[i].storage] = op;
        if (op->bad == 0) continue;
        std::vector<const LoggedOp*> next{op};
        while (!next.empty()) {
            const LoggedOp* at = next.back();
            next.pop_back();
            for (const LoggedOp* before : behind_gone[at]) {
                if (before->bad == 0 && suspects.insert(before).second) next.push_back(before);
            }
        }
    }
    return suspects;
}

}  // namespace

bool Session::is_bad(const TensorView& tensor) const { return scannable(tensor) && scanner_.range(tensor).suspicious; }

/// Before the verdict sees an op: where what it read came from. `bad` as for Verdict::op.
void Session::look_behind(const OpEvent& event, uint64_t bad, int64_t step, Outcome& outcome) {
    const bool root = is_root(event);
    const bool leaves =
        root || event.op->op_class == OpClass::HostRead || event.op->op_class == OpClass::Collective;
    if (bad == 0 && !leaves) return;
    for (int32_t i = 0; bad != 0 && i < event.output_count; ++i) {
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

/// Before a gradient reaches its leaf.
void Session::look_behind(const NodeEvent& event, int64_t step, Outcome& outcome) {
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (!is_bad(event.inputs[i])) continue;
        tier_.alarm(step);
        if (verdict_.knows(event.inputs[i])) continue;
        look_back(outcome);
        return;
    }
}

/// Reads what is left of the outputs in the log, oldest first, and hands their ops to the verdict.
void Session::look_back(Outcome& outcome) {
    Borrowed borrowed(adapter_.load(std::memory_order_acquire)->storages);
    log_.take([&](const std::vector<LoggedOp*>& ops) {
        for (LoggedOp* op : ops) read_what_is_left(*op, borrowed);
        const std::set<const LoggedOp*> suspects = suspects_of(ops);
        for (LoggedOp* op : ops) {
            ForwardRecord forward;
            forward_of(op->context, forward);
            BirthId born = 0;
            if (op->bad != 0 || suspects.count(op) == 0 || !verdict_.presume(op->event, op->context, forward, &born)) {
                verdict_.op(op->event, op->context, op->bad, forward, &born, outcome);
            }
            if (op->makes_node && born != 0) forwards_.born(op->made, born);
        }
        verdict_.end_look_back();
    });
}

void Session::read_what_is_left(LoggedOp& op, Borrowed& borrowed) {
    const auto look = [&](TensorView& tensor) {
        if (!scannable(tensor)) return false;
        if (borrowed.add(tensor.storage) && unchanged(lineage_, tensor, op.context.seq)) return true;
        tensor.flags = (tensor.flags & ~uint32_t(kScannable)) | kGone;
        return false;
    };
    op.bad = 0;
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        const bool unread = ((op.unread >> i) & 1) != 0;
        if (look(op.outputs[i]) && unread && scanner_.range(op.outputs[i]).suspicious) op.bad |= uint64_t(1) << i;
    }
    for (int32_t i = 0; i < op.event.input_count; ++i) {
        if (written_by(op.event, op.inputs[i])) continue;
        look(op.inputs[i]);
        if ((op.inputs[i].flags & kGone) != 0) ++op.context.gone;
    }
}


}  // namespace numsan
