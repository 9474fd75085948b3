#include "host/verdict/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/base/thresholds.h"
#include "host/cause/measure.h"
#include "host/ops/op_traits.h"
#include "host/track/headroom.h"
#include "host/verdict/zeros.h"

namespace numsan {
namespace {

constexpr size_t kMaxStateWrites = 256;

/// A root of something infinite: what overflowed need not be large in the end.
bool shrinks(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return op.is({Form::Root, Form::Norm}) ||
           (op.form == Form::Power && event.scalar_count > 0 && event.scalars[0] > 0 && event.scalars[0] < 1);
}

/// add_(), lerp_(): computes what it writes from what is there, unlike copy_() and what is written with out=.
bool updates(const OpEvent& event) {
    const size_t length = std::strlen(event.op->name);
    return event.op->op_class == OpClass::Other && length > 0 && event.op->name[length - 1] == '_';
}

}  // namespace

bool is_root(const OpEvent& event) {
    return event.input_count == 1 && std::strcmp(event.op->name, "aten::ones_like") == 0;
}

Verdict::Verdict(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage,
                 const ParameterHistory& parameters)
    : scanner_(scanner),
      stacks_(stacks),
      lineage_(lineage),
      parameters_(parameters),
      births_(scanner, stacks, ledger_, losses_, lineage, parameters),
      finite_(scanner, lineage, ledger_, births_, pending_) {}

bool Verdict::touches_held(const OpEvent& event) const noexcept {
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (ledger_.may_hold(event.inputs[i].storage)) return true;
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        if (ledger_.may_hold(event.outputs[i].storage)) return true;
    }
    return false;
}

bool Verdict::interesting_by_class(const OpEvent& event) const noexcept {
    if (event.op->op_class != OpClass::HostRead) return true;
    // One value: a number the program reads.
    if (event.input_count != 1) return false;
    if (!scannable(event.inputs[0])) return met_bad_.load(std::memory_order_relaxed);
    return scanner_.range(event.inputs[0]).suspicious;
}

bool Verdict::knows(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ledger_.find(tensor) != nullptr;
}

bool Verdict::is_sure_of(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Kinds* known = ledger_.find(tensor);
    return known != nullptr && known->is_sure();
}

void Verdict::forget(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.clear(tensor);
}

Ledger::Entry Verdict::births_in(const TensorView& tensor) {
    if (!ledger_.may_hold(tensor.storage)) return {};
    const std::lock_guard<std::mutex> lock(mutex_);
    const Kinds* known = ledger_.find(tensor);
    return known != nullptr ? *known : Kinds{};
}

void Verdict::adopt(const TensorView& tensor, const Ledger::Entry& births) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.set(tensor, births);
}

/// Which births the op read. With clean outputs only what the ledger knows matters; otherwise every operand is looked
/// at.
Verdict::Kinds Verdict::read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad) {
    Kinds before;
    int32_t first_use = -1;  // an operand that nothing wrote, and that the op has by now
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kUnavailable) != 0) {
            if (const auto it = unread_births_.find(input.storage); it != unread_births_.end())
                births_.add_kinds(before, it->second);
        }
        if (!scannable(input)) continue;
        const bool gone = written_by(event, input);
        if (gone && event.op->op_class == OpClass::Overwriting) continue;
        const Kinds* known = ledger_.find(input);
        const bool collective = event.op->op_class == OpClass::Collective;
        if (collective && !sends(event, input)) continue;
        // What is sent may be bad though no op is known to have made it so: the outputs are not there yet to show it.
        const bool sent = collective && ledger_.unwritten(input) != nullptr;
        const bool unwritten = gone && outputs_bad && known == nullptr && updates(event) && ledger_.unwritten(input);
        if (unwritten) first_use = i;
        if (known == nullptr && ((!outputs_bad && !sent) || gone)) continue;
        if (gone) {
            for (const Kind kind : kNonFiniteKinds) births_.used(known->of(kind), event, context);
            births_.add_kinds(before, *known);
            continue;
        }
        if (known != nullptr && before.muted == 0) before.muted = known->muted;
        if (known != nullptr && before.flushed == 0) before.flushed = known->flushed;
        if (!scanner_.range(input).suspicious) continue;  // a clean slice of a bad storage
        if (known == nullptr) {
            Kinds made = unseen_update(input);
            if (made.finite()) made = births_.external(input, event, context, scanner_.health(input));
            made.since = context.step;
            ledger_.set(input, made);
            births_.add_kinds(before, made);
            continue;
        }
        Kinds here;
        const KindSet kinds = scanner_.kinds(input);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) continue;
            here.of(kind) = known->of(kind);
            births_.used(here.of(kind), event, context);
            if (is_parameter(input)) births_.becomes_initial_value(here.of(kind));
        }
        births_.add_kinds(before, here);
    }
    if (first_use >= 0 && before.finite()) {
        const TensorView& used = event.inputs[first_use];
        before = births_.external(used, event, context, scanner_.health(used));
    }
    return before;
}

void Verdict::op(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
                 BirthId* born, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *born = 0;
    if (bad_outputs.any()) met_bad_.store(true, std::memory_order_relaxed);
    last_step_ = std::max(last_step_, context.step);
    if (births_.full()) sweep();
    if (event.op->op_class == OpClass::Allocation) {
        for (int32_t i = 0; i < event.output_count; ++i) {
            if ((event.outputs[i].flags & kReturned) != 0 && scannable(event.outputs[i])) {
                ledger_.mark_unwritten(event.outputs[i], context.stack, context.seq);
            }
        }
        return;
    }
    if (wraps_memory(event)) ledger_.clear(event.inputs[0]);  // whatever was known of its address
    if (context.on_library_thread) {
        // A library's own thread: part of something that was called elsewhere. What it wrote is written, nothing is
        // born.
        for (int32_t i = 0; i < event.output_count; ++i) {
            if (scannable(event.outputs[i]) && ledger_.received(event.outputs[i]) == nullptr)
                ledger_.mark_written(event.outputs[i]);
        }
        return;
    }
    const Kinds before = read_inputs(event, context, bad_outputs.any());
    read_gradients(event, context);
    escapes_of(event, context, before, outcome);
    follow_check(event, context, before);
    if (event.op->op_class == OpClass::Collective) {
        receive(event, context, before);
        return;
    }
    write_outputs(event, context, bad_outputs, forward, before, born, outcome);
}

bool Verdict::is_certain(const OpEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return births_.certain(event) != 0;
}

bool Verdict::presume(const OpEvent& event, const OpContext& context, const ForwardRecord& forward, KindSet implied,
                      BirthId* born) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *born = 0;
    const KindSet certain = births_.certain(event);
    const KindSet kinds = certain != 0 ? certain : implied;
    const Kinds before = certain != 0 ? Kinds{} : read_inputs(event, context, true);
    Kinds now;
    for (const Kind kind : kNonFiniteKinds) {
        if ((kinds & kind) == 0) continue;
        const BirthId id = births_.origin(kind, event, context, before, {}, forward);
        now.of(kind) = id;
        if (*born == 0 && !births_.intended(id)) *born = id;
        if (Birth* birth = births_.find(id); birth != nullptr && certain == 0 && birth->seq == context.seq) {
            birth->evidence.push_back(
                "its result was gone, too: what was computed from it is bad, by ops that only hand on what they read");
        }
    }
    for (int32_t i = 0; i < event.output_count && kinds != 0; ++i) unread_births_[event.outputs[i].storage] = now;
    return kinds != 0;
}

void Verdict::end_look_back() {
    const std::lock_guard<std::mutex> lock(mutex_);
    unread_births_.clear();
}

/// The largest magnitude of an operand of a collective: as it was written, because the collective may already have
/// changed it.
double Verdict::sent(const TensorView& operand) const {
    Lineage::Record written;
    const double remembered =
        lineage_.find(operand.storage, written) ? magnitude_value(written.largest, written.dtype) : 0;
    return remembered > 0 && std::isfinite(remembered) ? remembered : scanner_.health(operand).absmax;
}

/// Whose values output `index` of a collective will hold, where that does not depend on the values.
void Verdict::note_sender(const OpEvent& event, int32_t index, Ledger::Received& received) {
    const std::string_view op = plain_op_name(event.op->name);
    const bool from_one = op == "broadcast" || op == "recv";
    if (from_one && event.scalar_count > 0) received.from = static_cast<int64_t>(event.scalars[0]);
    const TensorView* own = nullptr;  // what this rank puts in
    int32_t count = 0;
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (!sends(event, event.inputs[i])) continue;
        own = &event.inputs[i];
        ++count;
    }
    if (count != 1) return;
    if (op == "allgather") received.from = index;
    if (op == "_allgather_base" || op == "all_gather_into_tensor") received.share = own->numel;
}

/// A collective runs on by itself: its results are there when they are read.
void Verdict::receive(const OpEvent& event, const OpContext& context, const Kinds& before) {
    double sent = 0;
    const bool reduces = std::strstr(event.op->name, "reduce") != nullptr;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (reduces && scannable(input) && sends(event, input)) sent = std::max(sent, this->sent(input));
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!scannable(output)) continue;
        Ledger::Received received{nullptr, event.op, context.stack, context.seq, context.step, sent};
        received.bad = before;
        note_sender(event, i, received);
        ledger_.mark_received(output, received);
    }
}

void Verdict::sweep() {
    std::set<BirthId> used;
    pending_.add_births(used);
    for (const StateWrite& write : state_writes_) used.insert(write.birth);
    births_.sweep(std::move(used));
}

void Verdict::write_outputs(const OpEvent& event, const OpContext& context, OutputSet bad_outputs,
                            const ForwardRecord& forward, const Kinds& before, BirthId* born, Outcome& outcome) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kUnavailable) != 0) {
            if (before.finite())
                unread_births_.erase(output.storage);
            else
                unread_births_[output.storage] = before;
        }
        if (is_view(event, output)) continue;
        if (!scannable(output)) {
            // New memory without values of a float type: what was known of its address is over.
            if ((output.flags & (kReturned | kLater | kUnavailable)) == kReturned) ledger_.clear(output);
            continue;
        }
        ledger_.mark_written(output);
        const bool written = (output.flags & kWritten) != 0;
        const bool bad = bad_outputs.contains(i);
        if (!bad) {
            if (!written || covers_storage(output)) ledger_.clear(output);
            finite_.look_at_zeros(event, context, i, before, forward);
            if (i < 16 && (context.near_overflow >> i & 1) != 0) finite_.look_at_headroom(event, context, i, forward);
            continue;
        }
        const Kinds* entry = ledger_.find(output);
        const Kinds old = entry != nullptr ? *entry : Kinds{};
        // A storage that inner ops of this op filled is known already; a returned one is new, whatever its address was
        // before.
        const bool keep = written || event.inner_ops_shown || std::strncmp(event.op->name, "aten::", 6) != 0;
        Kinds now = written && !covers_storage(output) ? old : Kinds{};
        now.since = context.step;
        const KindSet kinds = scanner_.kinds(output);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) continue;
            const BirthId id = births_.origin(kind, event, context, before, keep ? old : Kinds{}, forward);
            now.of(kind) = id;
            now.unsure = static_cast<KindSet>(now.unsure & ~kind);
            if (!births_.intended(id) && (*born == 0 || id < *born)) *born = id;
            Birth* birth = births_.find(id);
            if (birth != nullptr && shrinks(event)) birth->through_root = true;
        }
        ledger_.set(output, now);
        follow_gradients(event, context, output, now);
        births_.leave_notes(now, output);
        if (!written) continue;
        take_gradients(output, outcome);
        if (is_parameter(output)) {
            escape(now, EscapeInto::Parameter, output.impl, context, Severity::Error, outcome);
        } else if (traits_of(event).form == Form::BatchNorm) {
            escape(now, EscapeInto::Buffer, output.impl, context, Severity::Error, outcome);
        } else if (context.node == nullptr && !is_gradient(output.storage)) {
            note_state_write(now, output, context);
        }
    }
}

/// State of the program may hold it now; its name, asked for later, shows which.
void Verdict::note_state_write(const Kinds& kinds, const TensorView& tensor, const OpContext& context) {
    if (context.ignored || state_writes_.size() >= kMaxStateWrites) return;
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr || birth->intended || birth->ignored || birth->escaped) continue;
        state_writes_.push_back({birth->id, tensor.impl, tensor.storage, context.step, context.seq, context.stack});
    }
}

}  // namespace numsan
