#include "host/session/session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "host/analyze/finding_builder.h"
#include "host/analyze/measure.h"
#include "host/analyze/zeros.h"
#include "host/ops/op_traits.h"
#include "host/session/run_facts.h"
#include "host/session/session_thread.h"

namespace numsan {
namespace {

bool starts_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }
bool is_optimizer_step(const char* name) { return starts_with(name, "Optimizer.step#"); }
bool is_data_loader(const char* name) { return starts_with(name, "enumerate(DataLoader)#"); }
bool is_ignore(const char* name) { return std::strcmp(name, "numsan:ignore") == 0; }

/// zeros_like, full_like, ...: a new tensor shaped like its operand.
[[gnu::noinline]] bool like_its_operand(const char* op) {
    const size_t length = std::strlen(op);
    return length > 5 && std::strcmp(op + length - 5, "_like") == 0;
}

/// A 16- or 8-bit result that is zero or all but zero in a backward pass, or zero elsewhere; or a weight of such a
/// type, or an average of one, that was updated.
[[gnu::noinline]] bool any_vanishing(const OpEvent& event, const OpContext& context, const Range* ranges) {
    for (int32_t i = 0; i < event.output_count && i < 16; ++i) {
        const TensorView& output = event.outputs[i];
        const DTypeInfo& type = info(output.dtype);
        if (!was_read(ranges[i])) continue;
        if ((output.flags & kScannable) == 0 || type.lane_bytes >= 4 || output.numel == 0) continue;
        if (context.node != nullptr && ranges[i].max_magnitude < (uint64_t(4) << type.mantissa_bits)) return true;
        if (context.node != nullptr) continue;
        if ((is_parameter(output) || context.on_state) && (output.flags & kWritten) != 0) return true;
        if (context.touched && event.grad_enabled && ranges[i].max_magnitude == 0) return true;
    }
    return false;
}

/// Only some steps are looked at.
bool vanishing(const OpEvent& event, const OpContext& context, const Range* ranges) {
    return context.underflow && looks_for_zeros(context.step) && any_vanishing(event, context, ranges);
}

/// A place whose results are large is looked at in the first steps and then in some: what it says is that they stay so.
bool crowding_step(int64_t step) { return step < 16 || (step & 15) == 0; }

}  // namespace

/// Bit i: output i, of a forward op, is of a 16- or 8-bit type and close to its largest number.
uint16_t Session::near_overflow(const OpEvent& event, const OpContext& context, const Range* ranges) noexcept {
    if (options_.headroom <= 0 || context.node != nullptr || context.in_backward || context.in_optimizer ||
        context.on_state || !crowding_step(context.step))
        return 0;
    uint32_t outputs = 0;
    for (int32_t i = 0; i < event.output_count && i < kMaxRanges; ++i) {
        if (ranges[i].max_magnitude >= near_overflow_from_[static_cast<size_t>(event.outputs[i].dtype)] &&
            !ranges[i].suspicious)
            outputs |= 1u << i;
    }
    return outputs != 0 && near_overflow_is_due(event, context) ? static_cast<uint16_t>(outputs) : uint16_t(0);
}

/// What a look back pinned. Dropping a last reference may run the program's code, whose ops are none of this event's.
void Session::unpin(Thread& thread, const OpLog& log) noexcept {
    if (thread.pinned == nullptr || !log.usable()) return;
    const std::unique_ptr<std::vector<const void*>> pinned(thread.pinned);
    thread.pinned = nullptr;
    thread.busy = true;
    for (const void* storage : *pinned) log.storages().unpin(storage);
    thread.busy = false;
}

/// Not inlined: the compiler would rather look up where a thread's variables lie again and again than remember it.
[[gnu::noinline]] Session::Thread& Session::this_thread() {
    static thread_local constinit Thread mine{};
    return mine;
}

Session::Session(Options options, const Scanner& scanner, StackSource& stacks, SessionFacts facts)
    : options_(std::move(options)),
      scanner_(scanner),
      stacks_(stacks),
      facts_(std::move(facts)),
      started_(std::chrono::steady_clock::now()),
      tier_(options_.tier),
      frames_(stacks),
      worker_births_(stacks, facts_.torch_root),
      readings_(scanner),
      verdict_(readings_, frames_, lineage_, parameters_),
      reporter_(options_, stacks, facts_.torch_root, facts_.run ? *facts_.run : run_facts(options_)) {
    verdict_.set_exchange(facts_.over_notes != nullptr ? facts_.over_notes(worker_births_) : &worker_births_);
    verdict_.set_history(static_cast<size_t>(options_.history));
    for (size_t i = 0; i < kDTypeCount; ++i)
        near_overflow_from_[i] = near_overflow_pattern(DType(i), options_.headroom);
    stacks_.on_own_thread = [] { this_thread().busy = true; };
    // Python has optimizers that say when they step; a loop without one has none that it finished.
    if (!facts_.python_version.empty()) steps_.count_scopes_only();
}

/// Where the program is. What the operands came from is trace()'s.
OpContext Session::context_of(Thread& thread, int64_t seq) {
    OpContext context;
    context.seq = seq;
    context.step = steps_.count();
    context.in_optimizer = thread.optimizer_depth > 0;
    context.in_data_loader = thread.loader_depth > 0;
    context.ignored = thread.ignore_depth > 0 || ignoring_.load(std::memory_order_relaxed) > 0;
    context.underflow = options_.underflow;
    context.headroom = options_.headroom;
    context.after_compiled = thread.after_compiled;
    if (thread.node_depth > 0) {
        const Thread::Node& node = thread.nodes[std::min(thread.node_depth, Thread::kMaxNodes) - 1];
        context.node = node.name;
        context.node_sequence = node.sequence;
        context.node_thread = node.thread;
        context.graph_task = node.graph_task;
    }
    return context;
}

/// What the operands were computed from. Before the op's own writes are remembered.
void Session::trace(const OpEvent& event, OpContext& context, Operands* operands) noexcept {
    uint32_t seen = 0;
    uint32_t known = 0;
    bool reads_parameter = false;
    Lineage::Known unwanted{};
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        Lineage::Known& last = operands != nullptr && i < Lineage::kMaxKnown ? operands->known[i] : unwanted;
        if ((input.flags & kNumber) == 0) {
            last = lineage_.known(input.storage);
        } else {  // no op made a number: what is remembered is of memory used again
            lineage_.forget(input.storage);
            last = {};
        }
        seen |= input.flags;
        known |= last.flags;
        reads_parameter |= is_parameter(input);
    }
    context.touched = context.touched || (seen & kRequiresGrad) != 0 || (known & Lineage::kTouched) != 0;
    context.from_module = context.from_module || (known & Lineage::kInModule) != 0;
    context.on_state = context.on_state || reads_parameter || (known & Lineage::kState) != 0;
}

/// What only the thread of the op knows, while it is there.
void Session::follow(Thread& thread, const OpEvent& event, OpContext& context) {
    if (event.grad_enabled && context.node == nullptr &&
        std::any_of(event.inputs, event.inputs + event.input_count, is_parameter)) {
        thread.last_parameter_read = context.seq;
    }
    context.last_parameter_read = thread.last_parameter_read;
    context.in_backward = event.graph_task != -1;
    if (context.node == nullptr && (steps_.awaits_forward() || steps_.awaits_update())) [[unlikely]]
        count_step(thread, event, context);
    if (thread.optimizer_depth > 0 && !thread.optimizer_step.known && !event.grad_enabled && !context.in_backward)
        [[unlikely]]
        learn_round(thread, event);
    context.stack = stacks_.capture();
    context.in_module = stacks_.in_module(context.stack);
    // Autograd's threads for devices have no Python either; between nodes they reduce gradients to their shapes.
    context.on_library_thread =
        context.stack == 0 && context.node == nullptr && !context.in_backward && !facts_.python_version.empty();
}

/// Narrows on_state, which so far says what the operands are, to ops that work on them by hand.
void Session::narrow_state(const OpEvent& event, OpContext& context) noexcept {
    context.on_state = context.on_state && !event.grad_enabled && context.node == nullptr && !context.in_backward &&
                       !context.in_module && (context.in_optimizer || !traits_of(event).has(kLayer));
}

/// Whether the thread is inside the node that adds to a leaf's gradient.
bool Session::accumulates(const Thread& thread) {
    return thread.node_depth > 0 && thread.node_depth <= Thread::kMaxNodes &&
           thread.nodes[thread.node_depth - 1].accumulates;
}

/// Reads the outputs of op number `seq` in `wanted` (see TierPolicy::reads) once. The result: those that hold
/// something that is not finite. What most ops need of it; the rest is out of its way.
OutputSet Session::scan(const OpEvent& event, int64_t seq, OutputSet wanted, Range* ranges, OpTally& tally) noexcept {
    const OpClass op_class = event.op->op_class;
    if (op_class == OpClass::Allocation || op_class == OpClass::Collective || ScanClock::samples(seq)) [[unlikely]]
        return scan_any(event, seq, wanted, ranges, tally);
    tally = {};
    OutputSet bad;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        Range range{};
        if ((output.flags & kScannable) == 0) [[unlikely]] {
            tally.add((output.flags & kLater) == 0 ? OpOutcome::Integer : OpOutcome::Device);
        } else if (!wanted.contains(i)) {
            tally.add(OpOutcome::Tier);
        } else {
            const int64_t size = output.numel * static_cast<int64_t>(info(output.dtype).element_bytes());
            if (size >= ScanClock::kLargeBytes) [[unlikely]]
                return scan_any(event, seq, wanted, ranges, tally);
            tally.add(OpOutcome::Scanned);
            tally.bytes += size;
            range = scanner_.range(output);
            if (range.suspicious) [[unlikely]]
                bad.add(i);
        }
        if (i < kMaxRanges) ranges[i] = range;
    }
    return bad;
}

/// Leaves what the ops after this one may ask: who wrote a storage, from what, how large it was.
void Session::remember(const OpEvent& event, const OpContext& context, const Range* ranges, bool accumulates,
                       const Operands* operands) noexcept {
    if (event.op->op_class == OpClass::Allocation) [[unlikely]] {
        for (int32_t i = 0; i < event.output_count; ++i) lineage_.forget(event.outputs[i].storage);
        return;
    }
    // A gradient as AccumulateGrad leaves it, an average that starts as zeros_like(parameter): what optimizers work on.
    const bool shaped = event.input_count == 1 && is_parameter(event.inputs[0]) && like_its_operand(event.op->name);
    lineage_.at_step(context.step, context.seq);
    // What was remembered of the address of new memory says nothing of it.
    const uint16_t flags =
        wraps_memory(event)
            ? uint16_t(0)
            : static_cast<uint16_t>((context.touched ? Lineage::kTouched : 0) |
                                    (context.in_module || context.from_module ? Lineage::kInModule : 0) |
                                    (context.node != nullptr ? Lineage::kBackward : 0) |
                                    (context.on_state || accumulates || shaped ? Lineage::kState : 0));
    const bool collective = event.op->op_class == OpClass::Collective;  // its results are not there yet
    const bool wrapped = wraps_memory(event);
    // What was asked before holds until the first output is remembered.
    const Lineage::Known* known =
        operands != nullptr && event.output_count == 1 && !wrapped ? operands->known : nullptr;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (wrapped) [[unlikely]]
            lineage_.forget(output.storage);  // new memory at an address that may be remembered
        else if (is_view(event, output) || (event.inner_ops_shown && lineage_.known(output.storage).last != 0))
            continue;
        const Range range = i < kMaxRanges ? ranges[i] : Range{};
        lineage_.add(event, output, range, context.seq, context.stack, flags, known);
        if (is_parameter(output) && (output.flags & kWritten) != 0 && !range.suspicious && !collective) {
            parameters_.add(output.impl, magnitude_value(range.max_magnitude, output.dtype),
                            learning_.load(std::memory_order_relaxed) && event.op->op_class == OpClass::Other);
        }
    }
}

/// What a healthy op needs is one function: its parts are short, and calling them was a tenth of them.
[[gnu::flatten]] void Session::op_end(const OpEvent& event) noexcept {
    Thread& thread = this_thread();
    if (thread.busy || !on()) [[unlikely]]
        return;
    try {
        if (event.on_device && is_of_device(thread, event)) [[unlikely]]
            return;
        const int64_t seq = ops_.fetch_add(1, std::memory_order_relaxed);
        if (event.output_count > 0) lineage_.prefetch(event.outputs[0].storage);  // most ops have one
        Range ranges[kMaxRanges];
        const bool all = tier_.reads_all(steps_.count()) || !log_.usable();
        const OutputSet wanted = all || verdict_.interesting(event, {}) ? OutputSet::all() : tier_.reads(event);
        OpTally tally;
        OutputSet bad = scan(event, seq, wanted, ranges, tally);
        if (bad.any() && !wanted.is_all()) [[unlikely]]
            bad = scan_any(event, seq, OutputSet::all(), ranges, tally);
        tally.add_unseen(std::exchange(thread.unseen, nullptr));
        if (IntegerWraps::concerns(event)) [[unlikely]]
            lineage_.wraps().look(event, seq);
        coverage_.add(tally);
        OpContext context = context_of(thread, seq);
        Operands operands;
        trace(event, context, &operands);
        follow(thread, event, context);
        narrow_state(event, context);
        static constexpr Made kNone{{}, false};
        std::optional<Made> noted;
        if (event.forward_sequence != ~uint64_t(0)) noted = note_forward(event, context);
        const Made& made = noted.has_value() ? *noted : kNone;
        context.near_overflow = near_overflow(event, context, ranges);
        // A look back starts from what is bad, or from a value that is read.
        if ((log_.usable() && event.op->op_class == OpClass::HostRead) || concerns(event, context, bad, ranges))
            [[unlikely]] {
            examine(thread, event, context, wanted, bad, ranges, made);
            return;
        }
        remember(event, context, ranges, accumulates(thread), &operands);
        if (!wanted.is_all()) [[unlikely]]
            log_.add(event, context, made.record, made.node, wanted.others());
    } catch (...) {
        unpin(thread, log_);
        if (DeviceSide* side = device_side()) unpin(thread, side->unread);
        fail("out of memory or a failure inside op_end");
    }
}

/// Whether anything about an op can matter whose outputs have been read; see judge.
bool Session::concerns(const OpEvent& event, const OpContext& context, OutputSet bad,
                       const Range* ranges) const noexcept {
    return verdict_.interesting(event, bad) || vanishing(event, context, ranges) || context.near_overflow != 0;
}

/// An op about which something may matter: seldom.
[[gnu::noinline, gnu::cold]] void Session::examine(Thread& thread, const OpEvent& event, OpContext& context,
                                                   OutputSet wanted, OutputSet bad, const Range* ranges,
                                                   const Made& made) {
    Outcome outcome;
    settle_before(bad);
    if (log_.usable()) look_behind(event, bad, context.step, outcome);
    if (!judge(event, context, bad, ranges, made, accumulates(thread), outcome) && !wanted.is_all())
        log_.add(event, context, made.record, made.node, wanted.others());
    publish(outcome);
    unpin(thread, log_);
}

/// So that the node which the op made finds it.
Session::Made Session::note_forward(const OpEvent& event, const OpContext& context) {
    Made made{{event.thread,
               NodeSeq{event.forward_sequence},
               context.seq,
               event.grad_enabled,
               {event.op, context.stack, 0, context.seq}},
              false};
    made.node = event.forward_sequence != ~uint64_t(0) && (context.node == nullptr || event.grad_enabled) &&
                forwards_.add(made.record);
    return made;
}

/// An op whose outputs have been read: `bad` are those that hold something that is not finite. False: nothing
/// about it can matter.
bool Session::judge(const OpEvent& event, OpContext& context, OutputSet bad, const Range* ranges, const Made& made,
                    bool accumulates, Outcome& outcome) {
    if (!concerns(event, context, bad, ranges)) {
        remember(event, context, ranges, accumulates);
        return false;
    }
    ForwardRecord forward;
    forward_of(context, forward);
    uint32_t autograd_facts[kMaxAutogradFacts] = {};
    if (bad.any() && event.autograd_facts != nullptr) {  // may take the interpreter's lock, so not under ours
        for (int32_t i = 0; i < event.input_count && i < kMaxAutogradFacts; ++i) {
            if ((event.inputs[i].flags & (kRequiresGrad | kLeaf)) == kRequiresGrad)
                autograd_facts[i] = event.autograd_facts(event.inputs[i].impl, true);
        }
        context.autograd_facts = autograd_facts;
    }
    BirthId born = 0;
    verdict_.op(event, context, bad, forward, &born, outcome);
    context.autograd_facts = nullptr;
    if (made.node && born != 0) forwards_.born(made.record, born);
    remember(event, context, ranges, accumulates);
    return true;
}

/// The op that made the node around it, if its number and its name agree; else `forward` stays as it is.
void Session::forward_of(const OpContext& context, ForwardRecord& forward) {
    if (context.node == nullptr) return;
    ForwardMap::Record record;
    if (!forwards_.find(context.node_thread, context.node_sequence, record)) return;
    // With gradients off nothing but an autograd.Function takes a number: what ran inside it shows where it was called.
    if (record.gradients == 0 || node_is_made_by(context.node, record.forward.op->name)) forward = record.forward;
}

void Session::node_begin(const NodeEvent& event) noexcept {
    Thread& thread = this_thread();
    if (!on()) return;
    if (++thread.node_depth <= Thread::kMaxNodes) {
        Thread::Node& node = thread.nodes[thread.node_depth - 1];
        const size_t length = strnlen(event.name, sizeof node.name - 1);
        std::memcpy(node.name, event.name, length);
        node.name[length] = '\0';
        node.accumulates = event.variable != nullptr;
        node.sequence = NodeSeq{event.sequence};
        node.thread = event.forward_thread;
        node.graph_task = event.graph_task;
    }
    steps_.node(event.variable == nullptr ? nullptr : event.variable->storage);
    rounds_.backward();
    if (event.variable == nullptr || thread.busy) return;
    learning_.store(true, std::memory_order_relaxed);
    try {
        OpContext context = context_of(thread, ops_.load(std::memory_order_relaxed));
        if (context.after_compiled) context.stack = stacks_.capture();
        if (event.variable->device != Device::Cpu) {
            if (DeviceSide* side = device_side()) return device_node(*side, event, context);
        }
        for (int32_t i = 0; i < event.input_count; ++i) lineage_.mark_gradient(event.inputs[i].storage);
        if (log_.usable() && !tier_.reads_all(context.step)) {
            Outcome outcome;
            look_behind(event, context.step, outcome);
            publish(outcome);
        }
        verdict_.node(event, context);
        unpin(thread, log_);
    } catch (...) {
        fail("out of memory or a failure inside node_begin");
    }
}

void Session::node_end() noexcept {
    Thread& thread = this_thread();
    if (thread.node_depth <= 0) return;
    if (thread.node_depth <= Thread::kMaxNodes) {
        const Thread::Node& node = thread.nodes[thread.node_depth - 1];
        if (!node.accumulates) thread.after_compiled = starts_with(node.name, "CompiledFunction");
    }
    --thread.node_depth;
}

void Session::scope_begin(const char* name) noexcept {
    Thread& thread = this_thread();
    if (!on() || thread.busy) return;
    if (is_data_loader(name)) ++thread.loader_depth;
    if (is_ignore(name)) ++thread.ignore_depth;
    try {
        DeviceSide* side = device_side();
        if (starts_with(name, "Optimizer.zero_grad#") && !mark(side, DeviceEvent::Kind::ZeroGrad)) verdict_.zero_grad();
        if (!is_optimizer_step(name) || ++thread.optimizer_depth > 1) return;
        steps_.optimizer_begins();
        thread.optimizer_step = {};
        thread.optimizer_step.stack = stacks_.capture();
        if (mark(side, DeviceEvent::Kind::OptimizerBegin)) return;
        Outcome outcome;
        verdict_.optimizer_begin(outcome);
        publish(outcome);
    } catch (...) {
        fail("out of memory or a failure inside scope_begin");
    }
}

void Session::scope_end(const char* name) noexcept {
    Thread& thread = this_thread();
    if (thread.busy) return;
    if (is_data_loader(name) && thread.loader_depth > 0) --thread.loader_depth;
    if (is_ignore(name) && thread.ignore_depth > 0) --thread.ignore_depth;
    if (is_optimizer_step(name) && thread.optimizer_depth > 0 && --thread.optimizer_depth == 0) {
        if (on() && !mark(device_side(), DeviceEvent::Kind::OptimizerEnd)) name_state_writes(verdict_.optimizer_end());
        if (log_.usable()) log_.clear();  // parameters were read as they were written: nothing bad is left of this step
        end_optimizer_step(thread);
        // While there is a process group: many programs take it down before they end.
        if (on() && !asked_rank_in_step_.exchange(true)) learn_rank();
    }
}

void Session::end_optimizer_step(Thread& thread) noexcept {
    try {
        steps_.optimizer_ends(rounds_.ended(thread.optimizer_step));
    } catch (...) {
        steps_.optimizer_ends();
        fail("out of memory at the end of an optimizer's step");
    }
}

void Session::use(const AdapterApi& adapter) noexcept {
    adapter_.store(&adapter, std::memory_order_release);
    if (tier_.keeps_log()) log_.use(adapter.storages);
    if (options_.verbosity < 2 || !uses_record_function(adapter)) return;
    try {
        reporter_.say(
            "operators are seen through record functions, which is slower: the dispatch key is another library's");
    } catch (...) {
        fail("out of memory");
    }
}

void Session::skipped(const char* why) noexcept {
    Thread& thread = this_thread();
    if (!thread.busy && thread.unseen == nullptr) thread.unseen = why;
}

}  // namespace numsan
