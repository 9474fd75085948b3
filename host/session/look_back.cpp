// The look back: something bad has shown that no op is known to have made, as the tier did not read every output.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/ops/effect.h"
#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {
namespace {

/// Whether no operator has written the storage since op `seq`, as far as is remembered.
bool unchanged(const Lineage& lineage, const TensorView& tensor, int64_t seq) {
    return lineage.written_at(tensor.storage) <= seq;
}

/// An op that makes or fills a tensor with the program's finite values: somebody wrote its result since, without an
/// operator.
bool cannot_make_bad_values(const OpEvent& event) {
    const Form form = traits_of(event).form;
    if (form == Form::Finite) return true;
    return form == Form::Fill && event.scalar_count > 0 &&
           std::all_of(event.scalars, event.scalars + event.scalar_count, [](double x) { return std::isfinite(x); });
}

/// An op whose results have these kinds only if its operands were not finite. A NaN makes an infinity beside it likely.
bool has_kinds_by_operands_only(const OpEvent& event, KindSet kinds, DType dtype) {
    const OpTraits& op = traits_of(event);
    const KindSet may = effect({op, {}, {}, dtype}).may;
    return (may & ((kinds & kNaN) != 0 ? KindSet(kNaN) : kinds)) == 0;
}

/// Of each op: who wrote its operands that are gone.
using UnavailableWriters = std::map<const LoggedOp*, std::vector<const LoggedOp*>>;

UnavailableWriters unavailable_writers_of(const std::vector<LoggedOp*>& ops) {
    std::map<const void*, const LoggedOp*> writer;  // of each storage, up to here
    UnavailableWriters writers;
    for (const LoggedOp* op : ops) {
        std::vector<const LoggedOp*>& behind = writers[op];
        for (int32_t i = 0; i < op->event.input_count; ++i) {
            if ((op->inputs[i].flags & kUnavailable) == 0) continue;
            if (const auto it = writer.find(op->inputs[i].storage); it != writer.end()) behind.push_back(it->second);
        }
        for (int32_t i = 0; i < op->event.output_count; ++i) writer[op->outputs[i].storage] = op;
    }
    return writers;
}

/// Ops whose results are gone, and which something bad was computed from by way of results that are gone.
std::set<const LoggedOp*> candidates_of(const std::vector<LoggedOp*>& ops) {
    const UnavailableWriters writers = unavailable_writers_of(ops);
    std::set<const LoggedOp*> candidates;
    for (const LoggedOp* op : ops) {
        if (!op->bad.any()) continue;
        std::vector<const LoggedOp*> next{op};
        while (!next.empty()) {
            const LoggedOp* at = next.back();
            next.pop_back();
            for (const LoggedOp* before : writers.at(at)) {
                if (!before->bad.any() && candidates.insert(before).second) next.push_back(before);
            }
        }
    }
    return candidates;
}

/// Its operands are all there, and would have said that it made something bad. Precondition: they do not say so.
bool is_ruled_out(const LoggedOp& op) {
    return op.context.unavailable == 0 && is_decided_by_ranges(traits_of(op.event)) &&
           std::all_of(op.inputs, op.inputs + op.event.input_count, [](const TensorView& t) { return scannable(t); });
}

/// An op whose result, which is gone, has an infinity that the program wrote down: it wrote it, or chose among what has
/// one.
bool carries_infinity(const LoggedOp& op, const std::vector<const LoggedOp*>& writers,
                      const std::set<const LoggedOp*>& intended_infinities) {
    if (op.event.op->op_class == OpClass::Constant && op.event.infinite_scalar) return true;
    if (op.event.op->op_class != OpClass::Preserving && traits_of(op.event).form != Form::Choose) return false;
    return std::any_of(writers.begin(), writers.end(),
                       [&](const LoggedOp* from) { return intended_infinities.count(from) != 0; });
}

}  // namespace

bool Session::is_bad(const TensorView& tensor) const { return scannable(tensor) && scanner_.range(tensor).suspicious; }

/// Before the verdict sees an op: where what it read came from. `bad` as for Verdict::op.
void Session::look_behind(const OpEvent& event, OutputSet bad, int64_t step, Outcome& outcome) {
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
    Thread& thread = this_thread();
    if (thread.pinned == nullptr) thread.pinned = new std::vector<const void*>;
    log_.take([&](const std::vector<LoggedOp*>& ops) {
        std::map<const void*, int64_t> last_writes;
        for (const LoggedOp* op : ops) {
            for (int32_t i = 0; i < op->event.output_count; ++i) {
                if (!is_view(op->event, op->outputs[i])) last_writes[op->outputs[i].storage] = op->context.seq;
            }
        }
        for (LoggedOp* op : ops) read_what_is_left(*op, last_writes, *thread.pinned);
        judge_past(ops, outcome);
    });
}

/// Bad results that their ops can only have been handed, by operands that are gone: which op before, whose result is
/// gone, too, must have made them. None where an operand that is there explains them.
std::map<const LoggedOp*, KindSet> Session::implied_by(const std::vector<LoggedOp*>& ops) {
    const UnavailableWriters writers = unavailable_writers_of(ops);
    std::map<const LoggedOp*, KindSet> implied;
    std::set<const LoggedOp*> intended_infinities;
    const auto reads_bad = [&](const LoggedOp& op) {
        return std::any_of(op.inputs, op.inputs + op.event.input_count, [&](const TensorView& t) {
            return scannable(t) && !written_by(op.event, t) && readings_.range(t).suspicious;
        });
    };
    for (const LoggedOp* op : ops) {
        if (carries_infinity(*op, writers.at(op), intended_infinities)) intended_infinities.insert(op);
        if (!op->bad.any() || op->context.unavailable == 0 || reads_bad(*op)) continue;
        KindSet kinds = 0;
        for (int32_t i = 0; i < op->event.output_count; ++i) {
            if (op->bad.contains(i)) kinds |= readings_.kinds(op->outputs[i]);
        }
        const auto propagates = [&](const LoggedOp& at) {
            return at.event.op->op_class == OpClass::Preserving ||
                   has_kinds_by_operands_only(at.event, kinds,
                                              at.event.output_count > 0 ? at.outputs[0].dtype : DType::Float32);
        };
        if (!propagates(*op)) continue;
        const LoggedOp* maker = nullptr;
        const LoggedOp* grew = nullptr;  // where an infinity may have been too large a sum or product
        bool infinite = false;
        bool explained = false;
        std::set<const LoggedOp*> seen;
        std::vector<const LoggedOp*> next{op};
        while (!next.empty() && !explained) {
            const LoggedOp* at = next.back();
            next.pop_back();
            if (!seen.insert(at).second) continue;
            if (at != op) {
                explained = at->bad.any() || reads_bad(*at) || implied.count(at) != 0 || verdict_.is_certain(at->event);
                if (at->event.op->op_class == OpClass::Constant || cannot_make_bad_values(at->event)) continue;
                if (!propagates(*at)) {
                    if (is_ruled_out(*at)) continue;
                    if (maker == nullptr || at->context.seq > maker->context.seq) maker = at;
                    continue;
                }
                const bool grows = !has_kinds_by_operands_only(at->event, kAnyInf, DType::Float16);
                if (grows && (grew == nullptr || at->context.seq > grew->context.seq)) grew = at;
            }
            const std::vector<const LoggedOp*>& before = writers.at(at);
            // What the program wrote there on purpose has met something here: 0 times it, or itself.
            const auto carries = [&](const LoggedOp* from) { return intended_infinities.count(from) != 0; };
            if ((kinds & kNaN) != 0 && intended_infinities.count(at) == 0 &&
                std::any_of(before.begin(), before.end(), carries)) {
                infinite = true;
                maker = at;
                break;
            }
            next.insert(next.end(), before.begin(), before.end());
        }
        if (explained) continue;
        for (const LoggedOp* intended : intended_infinities) {
            if (infinite) implied[intended] = kAnyInf;
        }
        if (maker == nullptr && (kinds & kNaN) == 0) maker = grew;
        if (maker != nullptr && maker != op) implied[maker] = kinds;
    }
    return implied;
}

/// Ops of the past, oldest first: what is left of their results has been looked at, what is gone is marked.
void Session::judge_past(const std::vector<LoggedOp*>& ops, Outcome& outcome) {
    const std::set<const LoggedOp*> candidates = candidates_of(ops);
    const std::map<const LoggedOp*, KindSet> implied = implied_by(ops);
    for (LoggedOp* op : ops) {
        if (op->bad.any() && cannot_make_bad_values(op->event)) continue;
        ForwardRecord forward;
        forward_of(op->context, forward);
        BirthId born = 0;
        const auto must = implied.find(op);
        const bool candidate = !op->bad.any() && (must != implied.end() || candidates.count(op) != 0);
        if (!candidate || !verdict_.presume(op->event, op->context, forward,
                                            must != implied.end() ? must->second : KindSet(0), &born)) {
            verdict_.op(op->event, op->context, op->bad, forward, &born, outcome);
        }
        if (op->makes_node && born != 0) forwards_.born(op->made, born);
    }
    verdict_.end_look_back();
}

void Session::read_what_is_left(LoggedOp& op, const std::map<const void*, int64_t>& last_writes,
                                std::vector<const void*>& pinned) {
    const int64_t seq = op.context.seq;
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
