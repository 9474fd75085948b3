#include "host/device/device_intake.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "host/device/device_scans.h"
#include "host/device/device_views.h"
#include "host/device/host_operands.h"
#include "host/event/look_back.h"

namespace numsan {
namespace {

constexpr int64_t kReadBytes = 1 << 20;      ///< host tensors of such an event are read up to this size
constexpr int64_t kMeasuredBytes = 1 << 16;  ///< and looked at closely up to this one

/// What is read on the host while the event happens.
void read_on_host(const OpEvent& event, HostReading* reading, const Scanner& scanner, const DeviceScanner& device) {
    const auto read = [&](const TensorView& t) {
        if ((t.flags & kScannable) == 0) return;
        HostReading& now = *reading++;
        const bool output = (t.flags & (kReturned | kWritten)) != 0;
        if (output && device.writes_later(t.data)) return;  // it holds what it held before
        if (bytes_of(t) > kReadBytes && (t.flags & kReturned) == 0) return;
        now.range = scanner.range(t);
        now.known = HostReading::Known::Range;
        if (!now.range.suspicious && bytes_of(t) > kMeasuredBytes) return;
        now.health = scanner.health(t);
        now.known = HostReading::Known::Health;
    };
    std::for_each(event.inputs, event.inputs + event.input_count, read);
    std::for_each(event.outputs, event.outputs + event.output_count, read);
}

/// What autograd knows of operands without waiting for a lock: it is asked while they live. False: nothing.
bool ask_autograd_facts(const OpEvent& event, uint32_t (&autograd_facts)[kMaxAutogradFacts]) {
    if (event.autograd_facts == nullptr || !event.grad_enabled) return false;
    uint32_t any = 0;
    for (int32_t i = 0; i < event.input_count && i < kMaxAutogradFacts; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & (kRequiresGrad | kLeaf)) == kRequiresGrad)
            any |= autograd_facts[i] = event.autograd_facts(input.impl, false);
    }
    return any != 0;
}

}  // namespace

OpSeq DeviceIntake::op(ThreadState& thread, const OpEvent& event, bool waits) {
    const OpSeq seq{parts_.ops.fetch_add(1, std::memory_order_relaxed)};
    const char* unseen = std::exchange(thread.unseen, nullptr);
    side_.gradients.pass(event, seq);
    OpContext context = parts_.contexts.begin(thread, seq);
    if (event.communicator != nullptr) context.collective = parts_.collectives.begin(event, seq);
    parts_.contexts.follow(thread, event, context);
    const ForwardMap::Made made = parts_.contexts.note_forward(event, context);
    uint32_t autograd_facts[kMaxAutogradFacts] = {};
    if (ask_autograd_facts(event, autograd_facts)) context.autograd_facts = autograd_facts;
    const Reads reads = reads_of(event, context);
    std::unique_ptr<LookBackScans> past;
    if (reads.watch != 0 && side_.unread.usable())
        past = reads.capture != 0 ? ask_graph_back(thread, event, reads.capture) : ask_back(thread, event);
    const uint64_t always = reads.handed + reads.watched;
    const bool looks_back = past != nullptr && !past->is_of_graph();  // in a graph by the numbers that are there
    DeviceEvent* kept =
        side_.log.add(event, context, always + (looks_back ? past->numbers() : 0), side_.scanner.window());
    if (kept == nullptr) {
        side_.gradients.flush();
        settler_.settle();
        if (looks_back) {  // the event matters more
            side_.asking.store(false, std::memory_order_release);
            past.reset();
        }
        kept = side_.log.add(event, context, always, side_.scanner.window());
    }
    if (kept != nullptr) {
        kept->unseen = unseen;
        kept->capture = reads.capture;
        kept->made = made.record;
        kept->makes_node = made.node;
        kept->accumulates = thread.accumulates();
        kept->read = reads.outputs;
        kept->handed = reads.handed;
        kept->watch = reads.watch;
        kept->watched = reads.watched;
        read_on_host(event, kept->host, host_, side_.scanner);
        HostOperands(*kept, parts_).keep();
        if (kept->numbers > 0) hand_over(*kept, past.get(), reads.spent);
        // Who wrote a tensor last is known, where something of the graph is scanned: its end is that of a scan.
        if (reads.capture != 0 && kept->graph == nullptr && side_.replays.share != 0 &&
            side_.last_capture.load(std::memory_order_relaxed) == reads.capture)
            keep_for_replays(*kept, reads.capture);
        if (kept->graph != nullptr) log_captured(event, *kept, made);
        waits = waits && kept->scanned && side_.begin_await(seq);
        commit(*kept);
        if (!reads.outputs.is_all()) leave_unread(event, context, made, reads.outputs);
    } else {
        parts_.coverage.add({OpOutcome::Behind, nullptr, 0});
        waits = false;
    }
    if (past != nullptr) side_.asking.store(false, std::memory_order_release);
    past.reset();
    LookBack::unpin(thread, side_.unread);
    // The program has waited for the device, or is about to use what came from it.
    const bool to_host = event.op->op_class == OpClass::HostRead ||
                         std::any_of(event.outputs, event.outputs + event.output_count,
                                     [](const TensorView& t) { return t.device == Device::Cpu; });
    if (waits) return seq;
    if (to_host) {
        settler_.settle();
        settler_.await_published();
    }
    return OpSeq::None;
}

/// What is read of an op on the device now.
DeviceIntake::Reads DeviceIntake::reads_of(const OpEvent& event, const OpContext& context) {
    const bool leaves = leaves_device(event);
    const DeviceSide::Choice choice = side_.reads(event, context.step);
    Reads reads{choice.outputs, 0, 0, 0, 0, choice.spent};
    const bool may_be_captured = leaves || !reads.outputs.is_all() ||
                                 (side_.replays.share != 0 && side_.has_graphs.load(std::memory_order_relaxed));
    if (may_be_captured && event.queue.known) reads.capture = side_.scanner.capture_of(event.queue);
    // The device chooses what of a graph is looked at in a replay.
    if (reads.capture != 0) {
        reads.outputs = OutputSet::all();
        reads.spent = Governor::Spent::Once;
    }
    for (int32_t i = 0; i < event.output_count; ++i) reads.handed += is_handed(event, i, reads.outputs);
    // Of a graph only what backward() starts from: else its scans do not take turns.
    const bool watches = reads.capture == 0 || is_loss_of_graph(event, context);
    if (!leaves || !watches) return reads;
    reads.watch = watched(event.inputs, event.input_count, event.queue);
    for (int32_t i = 0; reads.watch >> i != 0; ++i) {
        if (written_by(event, event.inputs[i])) reads.watch &= ~(uint64_t(1) << i);
    }
    reads.watched = static_cast<uint32_t>(std::popcount(reads.watch));
    count_unwatched(event);
    return reads;
}

/// Without frames of Python any op that makes ones of a tensor looks like the first of backward().
bool DeviceIntake::is_loss_of_graph(const OpEvent& event, const OpContext& context) const {
    return is_root(event) && event.inputs[0].numel == 1 && (event.inputs[0].flags & kRequiresGrad) != 0 &&
           parts_.facts.is_loss(context.stack);
}

/// A list may hand more values to the host at once than there are bits to watch them by.
void DeviceIntake::count_unwatched(const OpEvent& event) noexcept {
    const auto unwatched = [&](const TensorView& t) { return is_here(event.queue, t) && !written_by(event, t); };
    const TensorView* const first = event.inputs + std::min(event.input_count, kMostWatched);
    const auto count = std::count_if(first, event.inputs + event.input_count, unwatched);
    if (count == 0) return;
    const char* none = nullptr;
    side_.why_unread_leaving.compare_exchange_strong(none, "they left with more than 63 tensors at once");
    side_.unread_leaving.fetch_add(static_cast<int64_t>(count), std::memory_order_relaxed);
}

/// What the device is to look at if the value that leaves is bad; null: nothing. Until that is handed over no other
/// thread asks: `asking` is the caller's to end.
std::unique_ptr<LookBackScans> DeviceIntake::ask_back(ThreadState& thread, const OpEvent& event) {
    constexpr int64_t kPause = 20;  // times what the last one took: a program may read many values
    if (side_.asking.exchange(true, std::memory_order_acquire)) return nullptr;  // another thread's value leaves, too
    std::unique_ptr<LookBackScans> past;
    const int64_t began = Governor::now();
    const bool due = is_root(event) || began - side_.asked_at > kPause * side_.asking_took;
    try {
        if (!due) {
            side_.asking.store(false, std::memory_order_release);
            return nullptr;
        }
        const int64_t worked = Governor::thread_time();
        const uint64_t last_step = side_.last_step.load();
        side_.unread.drop(side_.steps_over.load(), [&](uint64_t number, const LoggedOp& op) {
            return number >= last_step && std::any_of(op.outputs, op.outputs + op.event.output_count,
                                                      [](const TensorView& t) { return is_parameter(t); });
        });
        past = std::make_unique<LookBackScans>(side_.unread, event.queue, thread.pins());
        const bool too_long = past->numbers() > side_.scanner.window() / 8;
        if (past->elsewhere() > 0 || too_long) side_.looks_left_out.fetch_add(1, std::memory_order_relaxed);
        if (past->numbers() == 0 || too_long) past.reset();
        side_.asked_at = Governor::now();
        side_.asking_took = Governor::thread_time() - worked;
        side_.governor.spend(side_.asked_at - began, Governor::Spent::Anyhow);
    } catch (...) {
        side_.asking.store(false, std::memory_order_release);
        throw;
    }
    if (past == nullptr) side_.asking.store(false, std::memory_order_release);
    return past;
}

void DeviceIntake::log_captured(const OpEvent& event, const DeviceEvent& kept, const ForwardMap::Made& made) {
    if (side_.replays.share == 0) return;
    const auto is_of_this = [&](uint64_t, const LoggedOp& op) { return op.graph.capture == kept.capture; };
    if (kept.captured && side_.last_capture.exchange(kept.capture, std::memory_order_relaxed) != kept.capture)
        side_.captured.drop(~uint64_t(0), is_of_this);
    OutputSet unread;
    bool any = false;
    for (int32_t i = 0; i < event.output_count; ++i) {
        if (kept.captured && is_handed(event, i, kept.read)) unread.add(i);
        any = any || is_later(event.outputs[i]);
    }
    if (any) side_.captured.add(event, kept.context, made.record, made.node, unread, {kept.capture, kept.sequence});
}

/// Behind a gate in the graph: what of it is there where a value leaves that is looked at in each replay. From there
/// on the graph's other scans take turns.
std::unique_ptr<LookBackScans> DeviceIntake::ask_graph_back(ThreadState& thread, const OpEvent& event,
                                                            uint64_t capture) {
    if (side_.replays.share == 0 || side_.asking.exchange(true, std::memory_order_acquire)) return nullptr;
    std::unique_ptr<LookBackScans> past;
    try {
        past = std::make_unique<LookBackScans>(side_.captured, event.queue, thread.pins(), capture);
        const bool too_long = past->numbers() > side_.scanner.window() / 8;
        if (past->elsewhere() > 0 || too_long) side_.looks_left_out.fetch_add(1, std::memory_order_relaxed);
        if (past->numbers() == 0 || too_long) past.reset();
    } catch (...) {
        side_.asking.store(false, std::memory_order_release);
        throw;
    }
    if (past == nullptr) side_.asking.store(false, std::memory_order_release);
    return past;
}

void DeviceIntake::leave_unread(const OpEvent& event, const OpContext& context, const ForwardMap::Made& made,
                                OutputSet read) {
    // Of long lists only parameters: what else they hold shows there.
    const bool long_list = event.output_count > LoggedOp::kMaxOutputs;
    OutputSet unread;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        const bool kept = is_here(event.queue, output) && writes_now(event) && !is_view(event, output);
        if (kept && !read.contains(i) && (!long_list || is_parameter(output))) unread.add(i);
    }
    if (unread.any()) side_.unread.add(event, context, made.record, made.node, unread);
}

void DeviceIntake::hand_over(DeviceEvent& event, LookBackScans* past, Governor::Spent spent_on_outputs) {
    using Taken = DeviceScanner::Taken;
    const auto take = [&](const std::vector<DeviceScan>& scans, Governor::Spent spent) {
        if (scans.empty() || !event.op.queue.known) return Taken::No;
        const Taken taken = side_.scanner.scan(scans.data(), static_cast<int32_t>(scans.size()));
        side_.governor.spend(cost_of(side_.scanner, scans), spent);
        return taken;
    };
    Taken outputs = Taken::No, watched = Taken::No;
    if (event.handed > 0) outputs = take(OutputScans(event, side_.replays).scans(), spent_on_outputs);
    if (event.watched > 0 && (event.handed == 0 || outputs != Taken::No)) {
        const ScanTicket first = event.sequence + event.handed;
        watched = take(watching_scans(event.inputs, event.watch, event.op.queue, first, past != nullptr, side_.replays),
                       Governor::Spent::Anyhow);
    }
    const Taken last = event.watched > 0 ? watched : outputs;
    event.scanned = last == Taken::Now;
    event.captured = outputs == Taken::Captured || watched == Taken::Captured;
    event.governs = past != nullptr && watched == Taken::Captured;
    if (past != nullptr && last == (past->is_of_graph() ? Taken::Captured : Taken::Now)) {
        const Taken looks = past->hand_over(side_.scanner, event.sequence + event.handed + event.watched);
        if (looks == Taken::Now) event.look_back = past->release();
    }
    if (!event.captured) return;
    keep_for_replays(event, event.capture != 0 ? event.capture : side_.scanner.capture_of(event.op.queue));
    if (event.governs) side_.governed_capture.store(event.capture, std::memory_order_relaxed);
}

/// What a graph does or writes, also where nothing of it is scanned.
void DeviceIntake::keep_for_replays(DeviceEvent& event, uint64_t capture) {
    event.capture = capture;
    if (parts_.keep_launches != nullptr) parts_.keep_launches(event.op.launches);
    event.graph = DeviceLog::keep(event);
    if (event.graph == nullptr) return;
    side_.captures_due.fetch_add(1);
    side_.has_graphs.store(true);
}

void DeviceIntake::node(const NodeEvent& event, const OpContext& context) {
    uint64_t watch = 0;
    const uint64_t capture = event.queue.known ? side_.scanner.capture_of(event.queue) : 0;
    const bool captured = capture != 0;
    const bool takes_turns = side_.governed_capture.load(std::memory_order_relaxed) == capture;
    if (event.queue.known && (!captured || takes_turns)) watch = watched(event.inputs, event.input_count, event.queue);
    const auto numbers = static_cast<uint32_t>(std::popcount(watch));
    DeviceEvent* kept = side_.log.add(event, context, numbers, side_.scanner.window());
    if (kept == nullptr) {
        side_.gradients.flush();
        settler_.settle();
        kept = side_.log.add(event, context, numbers, side_.scanner.window());
    }
    if (kept == nullptr) {
        side_.lost_events.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    kept->watch = watch;
    kept->watched = numbers;
    if (numbers > 0) {
        std::vector<DeviceScan> scans =
            watching_scans(kept->inputs, watch, event.queue, kept->sequence, false, side_.replays);
        const StorageApi* held_by = captured ? nullptr : side_.gradients.hold(event.queue);
        for (DeviceScan& scan : scans) scan.held_by = held_by;
        side_.governor.spend(cost_of(side_.scanner, scans), captured ? Governor::Spent::Once : Governor::Spent::Anyhow);
        const auto taken = side_.scanner.scan(scans.data(), static_cast<int32_t>(scans.size()));
        kept->scanned = taken == DeviceScanner::Taken::Now;
        kept->captured = taken == DeviceScanner::Taken::Captured;
        if (held_by != nullptr) side_.gradients.held(context.seq);
        if (kept->captured) keep_for_replays(*kept, capture);
    }
    commit(*kept);
}

bool DeviceIntake::mark(DeviceEvent::Kind kind) noexcept {
    if (kind == DeviceEvent::Kind::OptimizerBegin) side_.gradients.step();
    if (kind == DeviceEvent::Kind::ZeroGrad) side_.gradients.flush();
    const uint64_t unread = kind == DeviceEvent::Kind::OptimizerEnd && side_.unread.usable() ? side_.unread.end() : 0;
    DeviceEvent* kept = side_.log.empty() ? nullptr : side_.log.add(kind);
    if (kept != nullptr) {
        kept->log_end = unread;
        commit(*kept);
    } else if (kind == DeviceEvent::Kind::OptimizerEnd) {
        side_.step_over(unread);
    }
    return kept != nullptr;
}

void DeviceIntake::commit(DeviceEvent& event) noexcept {
    side_.log.commit(event);
    if (side_.wanted.load(std::memory_order_relaxed) != 0) return;
    side_.wanted.store(1, std::memory_order_release);
    side_.wanted.notify_one();
}

}  // namespace numsan
