// Events that touch a device's memory: recorded, and handed to its scanner at once.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "host/session/device_look_back.h"
#include "host/session/device_scans.h"
#include "host/session/device_views.h"
#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {
namespace {

constexpr int64_t kReadBytes = 1 << 20;      ///< host tensors of such an event are read up to this size
constexpr int64_t kMeasuredBytes = 1 << 16;  ///< and looked at closely up to this one

/// What is read on the host while the event happens.
void read_on_host(const OpEvent& event, HostReading* reading, const Scanner& scanner, const DeviceScanner& device,
                  Verdict& verdict) {
    const auto read = [&](const TensorView& t) {
        if ((t.flags & kScannable) == 0) return;
        HostReading& now = *reading++;
        if ((t.flags & (kReturned | kWritten)) == 0)
            now.births = verdict.births_in(t);
        else if (device.writes_later(t.data))
            return;  // it holds what it held before
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

}  // namespace

/// What autograd knows of operands without waiting for anybody: it is asked while they live. False: nothing.
bool Session::ask_autograd_facts(const OpEvent& event, uint32_t (&autograd_facts)[kMaxAutogradFacts]) {
    if (event.autograd_facts == nullptr || !event.grad_enabled) return false;
    uint32_t any = 0;
    for (int32_t i = 0; i < event.input_count && i < kMaxAutogradFacts; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & (kRequiresGrad | kLeaf)) == kRequiresGrad)
            any |= autograd_facts[i] = event.autograd_facts(input.impl, false);
    }
    return any != 0;
}

/// Null when the device cannot be scanned; coverage then says why.
DeviceSide* Session::device_side(const OpEvent& event) noexcept {
    if (DeviceSide* side = device_side()) return side;
    if (make_device_scanner_ == nullptr) return nullptr;
    try {
        std::call_once(device_once_, [&] {
            DeviceScanner* scanner = make_device_scanner_(event, no_device_);
            if (scanner == nullptr) return;
            const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
            auto side =
                std::make_unique<DeviceSide>(*scanner, options_, adapter != nullptr ? &adapter->storages : nullptr);
            read_device(*side);
            device_.store(side.release(), std::memory_order_release);
        });
    } catch (...) {
        fail("out of memory while a device was prepared");
    }
    return device_side();
}

/// Starts the thread that settles events while the program does something else. It makes no call of the device's.
void Session::read_device(DeviceSide& side) {
    struct Start {
        Session* session;
        DeviceSide* side;
    };
    auto start = std::make_unique<Start>(Start{this, &side});
    const auto run = [](void* data) -> void* {
        const std::unique_ptr<Start> mine(static_cast<Start*>(data));
        for (;;) {
            mine->side->wanted.wait(0);
            mine->side->wanted.store(0);
            mine->side->inside.fetch_add(1);
            const bool ending = mine->side->ending.load();
            if (!ending) mine->session->settle(*mine->side);
            mine->side->inside.fetch_sub(1);
            if (ending) return nullptr;
            if (!mine->side->log.empty() || mine->side->has_graphs.load()) {
                mine->side->wanted.store(1);
                DeviceSide::pause();
            }
        }
    };
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, start.get()) == 0) {
        (void)start.release();  // the thread's
        pthread_detach(thread);
    }  // else: events are settled where the program waits for the device
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Session::device_op(DeviceSide& side, Thread& thread, const OpEvent& event) {
    const int64_t seq = ops_.fetch_add(1, std::memory_order_relaxed);
    const char* unseen = std::exchange(thread.unseen, nullptr);
    side.gradients.pass(event, seq);
    OpContext context = context_of(thread, seq);
    follow(thread, event, context);
    const Made made = note_forward(event, context);
    uint32_t autograd_facts[kMaxAutogradFacts] = {};
    if (ask_autograd_facts(event, autograd_facts)) context.autograd_facts = autograd_facts;
    const bool leaves = leaves_device(event);
    OutputSet read = side.reads(event, context.step);
    // What a graph does is looked at in full: its replays come back to no op.
    const bool captured = (leaves || !read.is_all()) && event.queue.known && side.scanner.is_capturing(event.queue);
    if (captured) read = OutputSet::all();
    const bool all = read.is_all();
    uint32_t handed = 0;
    for (int32_t i = 0; i < event.output_count; ++i) handed += is_handed(event, i, read);
    uint64_t watch = leaves && !captured ? watched(event.inputs, event.input_count, event.queue) : 0;
    for (int32_t i = 0; watch >> i != 0; ++i) {
        if (written_by(event, event.inputs[i])) watch &= ~(uint64_t(1) << i);
    }
    if (leaves && !captured) count_unwatched(side, event);
    const auto watching = static_cast<uint32_t>(std::popcount(watch));
    std::unique_ptr<LookBackScans> past;
    if (watch != 0 && side.unread.usable()) past = ask_back(side, thread, event);
    uint64_t numbers = handed + watching + (past != nullptr ? past->numbers() : 0);
    DeviceEvent* kept = side.log.add(event, context, numbers, side.scanner.window());
    if (kept == nullptr) {
        side.gradients.flush();
        settle(side);
        numbers -= past != nullptr ? past->numbers() : 0;  // rather that than the event
        if (past != nullptr) side.asking.store(false, std::memory_order_release);
        past.reset();
        kept = side.log.add(event, context, numbers, side.scanner.window());
    }
    if (kept != nullptr) {
        kept->unseen = unseen;
        kept->made = made.record;
        kept->makes_node = made.node;
        kept->accumulates = accumulates(thread);
        kept->read = read;
        kept->handed = handed;
        kept->watch = watch;
        kept->watched = watching;
        read_on_host(event, kept->host, scanner_, side.scanner, verdict_);
        if (numbers > 0) hand_over(side, *kept, past.get());
        commit(side, *kept);
        if (!all) leave_unread(side, event, context, made, read);
    } else {
        coverage_.add({OpOutcome::Behind, nullptr, 0});
    }
    if (past != nullptr) side.asking.store(false, std::memory_order_release);
    past.reset();
    unpin(thread, side.unread);
    // The program has waited for the device, or is about to use what came from it.
    const bool to_host = event.op->op_class == OpClass::HostRead ||
                         std::any_of(event.outputs, event.outputs + event.output_count,
                                     [](const TensorView& t) { return t.device == Device::Cpu; });
    if (!to_host) return;
    settle(side);
    await_published(side);
}

/// A list may hand more values to the host at once than there are bits to watch them by.
void Session::count_unwatched(DeviceSide& side, const OpEvent& event) noexcept {
    const auto unwatched = [&](const TensorView& t) { return is_here(event.queue, t) && !written_by(event, t); };
    const TensorView* const first = event.inputs + std::min(event.input_count, kMostWatched);
    const auto count = std::count_if(first, event.inputs + event.input_count, unwatched);
    if (count == 0) return;
    const char* none = nullptr;
    side.why_unread_leaving.compare_exchange_strong(none, "they left with more than 63 tensors at once");
    side.unread_leaving.fetch_add(static_cast<int64_t>(count), std::memory_order_relaxed);
}

/// What the device is to look at if the value that leaves is bad; null: nothing. Until that is handed over nobody else
/// asks: `asking` is the caller's to end.
std::unique_ptr<LookBackScans> Session::ask_back(DeviceSide& side, Thread& thread, const OpEvent& event) {
    constexpr int64_t kPause = 20;  // times what the last one took: a program may read many values
    if (side.asking.exchange(true, std::memory_order_acquire)) return nullptr;  // another thread's value leaves, too
    std::unique_ptr<LookBackScans> past;
    const int64_t began = Governor::now();
    const bool due = is_root(event) || began - side.asked_at > kPause * side.asking_took;
    try {
        if (!due) {
            side.asking.store(false, std::memory_order_release);
            return nullptr;
        }
        const uint64_t last_step = side.last_step.load();
        side.unread.drop(side.steps_over.load(), [&](uint64_t number, const LoggedOp& op) {
            return number >= last_step && std::any_of(op.outputs, op.outputs + op.event.output_count,
                                                      [](const TensorView& t) { return is_parameter(t); });
        });
        if (thread.pinned == nullptr) thread.pinned = new std::vector<const void*>;
        past = std::make_unique<LookBackScans>(side.unread, event.queue, *thread.pinned);
        const bool too_long = past->numbers() > side.scanner.window() / 8;
        if (past->elsewhere() > 0 || too_long) side.looks_left_out.fetch_add(1, std::memory_order_relaxed);
        if (past->numbers() == 0 || too_long) past.reset();
        side.asked_at = Governor::now();
        side.asking_took = side.asked_at - began;
        side.governor.spend(side.asking_took);
    } catch (...) {
        side.asking.store(false, std::memory_order_release);
        throw;
    }
    if (past == nullptr) side.asking.store(false, std::memory_order_release);
    return past;
}

void Session::leave_unread(DeviceSide& side, const OpEvent& event, const OpContext& context, const Made& made,
                           OutputSet read) {
    // Of long lists only parameters: what else they hold shows there.
    const bool long_list = event.output_count > LoggedOp::kMaxOutputs;
    OutputSet unread;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        const bool kept = is_here(event.queue, output) && writes_now(event) && !is_view(event, output);
        if (kept && !read.contains(i) && (!long_list || is_parameter(output))) unread.add(i);
    }
    if (unread.any()) side.unread.add(event, context, made.record, made.node, unread);
}

void Session::hand_over(DeviceSide& side, DeviceEvent& event, LookBackScans* past) {
    DeviceScanner::Taken taken = DeviceScanner::Taken::No;
    const auto take = [&](const std::vector<DeviceScan>& scans) {
        if (scans.empty() || !event.op.queue.known) return;
        taken = side.scanner.scan(scans.data(), static_cast<int32_t>(scans.size()));
        side.governor.spend(cost_of(scans));
    };
    if (event.handed > 0) take(OutputScans(event).scans());
    if (event.watched > 0 && (event.handed == 0 || taken == DeviceScanner::Taken::Now))
        take(watching_scans(event.inputs, event.watch, event.op.queue, event.sequence + event.handed, past != nullptr));
    if (past != nullptr && taken == DeviceScanner::Taken::Now &&
        past->hand_over(side.scanner, event.sequence + event.handed + event.watched) == DeviceScanner::Taken::Now)
        event.look_back = past->release();
    event.scanned = taken == DeviceScanner::Taken::Now;
    event.captured = taken == DeviceScanner::Taken::Captured;
    if (!event.captured) return;
    event.graph = DeviceLog::keep(event);
    if (event.graph == nullptr) return;
    side.captures_due.fetch_add(1);
    side.has_graphs.store(true);
}

void Session::device_node(DeviceSide& side, const NodeEvent& event, const OpContext& context) {
    uint64_t watch = 0;
    if (event.queue.known && !side.scanner.is_capturing(event.queue))
        watch = watched(event.inputs, event.input_count, event.queue);
    const auto numbers = static_cast<uint32_t>(std::popcount(watch));
    DeviceEvent* kept = side.log.add(event, context, numbers, side.scanner.window());
    if (kept == nullptr) {
        side.gradients.flush();
        settle(side);
        kept = side.log.add(event, context, numbers, side.scanner.window());
    }
    if (kept == nullptr) {
        side.lost_events.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    kept->watch = watch;
    kept->watched = numbers;
    if (numbers > 0) {
        std::vector<DeviceScan> scans = watching_scans(kept->inputs, watch, event.queue, kept->sequence, false);
        const StorageApi* held_by = side.gradients.hold(event.queue);
        for (DeviceScan& scan : scans) scan.held_by = held_by;
        side.governor.spend(cost_of(scans));
        kept->scanned =
            side.scanner.scan(scans.data(), static_cast<int32_t>(scans.size())) == DeviceScanner::Taken::Now;
        if (held_by != nullptr) side.gradients.held(context.seq);
    }
    commit(side, *kept);
}

/// False: nothing waits for the device, so that what is marked can be done at once.
bool Session::mark(DeviceSide* side, DeviceEvent::Kind kind) noexcept {
    if (side == nullptr) return false;
    if (kind == DeviceEvent::Kind::OptimizerBegin) side->gradients.step();
    if (kind == DeviceEvent::Kind::ZeroGrad) side->gradients.flush();
    const uint64_t unread = kind == DeviceEvent::Kind::OptimizerEnd && side->unread.usable() ? side->unread.end() : 0;
    DeviceEvent* kept = side->log.empty() ? nullptr : side->log.add(kind);
    if (kept != nullptr) {
        kept->log_end = unread;
        commit(*side, *kept);
    } else if (kind == DeviceEvent::Kind::OptimizerEnd) {
        side->step_over(unread);
    }
    return kept != nullptr;
}

void Session::commit(DeviceSide& side, DeviceEvent& event) noexcept {
    side.log.commit(event);
    if (side.wanted.load(std::memory_order_relaxed) != 0) return;
    side.wanted.store(1, std::memory_order_release);
    side.wanted.notify_one();
}

void Session::before_write(const void* storage) noexcept {
    if (DeviceSide* side = device_side()) side->scanner.before_write(storage);
}

void Session::before_wait() noexcept {
    if (DeviceSide* side = device_side()) side->scanner.flush();
}

}  // namespace numsan
