// Events that touch a device's memory: handed to its scanner at once, judged in the program's order when it is known
// what the device wrote.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {
namespace {

constexpr int64_t kReadBytes = 1 << 20;      ///< host tensors of such an event are read up to this size
constexpr int64_t kMeasuredBytes = 1 << 16;  ///< and looked at closely up to this one
constexpr long kPollNanoseconds = 2'000'000;

int64_t bytes_of(const TensorView& t) { return t.numel * static_cast<int64_t>(info(t.dtype).element_bytes()); }

bool is_later(const TensorView& t) { return (t.flags & kLater) != 0; }

/// An op whose results on the device are there when its queue gets to them. A collective's come from elsewhere.
bool writes_now(const OpEvent& event) {
    return event.op->op_class != OpClass::Allocation && event.op->op_class != OpClass::Collective;
}

bool is_handed(const OpEvent& event, const TensorView& output) { return is_later(output) && writes_now(event); }

/// The operands whose values the scanner is asked for, by their places among the op's inputs.
int32_t operands_of(const OpEvent& event, int32_t (&places)[DeviceHit::kMaxInputs]) {
    int32_t count = 0;
    for (int32_t i = 0; i < event.input_count && count < DeviceHit::kMaxInputs; ++i) {
        if (is_later(event.inputs[i])) places[count++] = i;
    }
    return count;
}

void pause() {
    const timespec time{0, kPollNanoseconds};
    nanosleep(&time, nullptr);
}

/// A device's events are judged later than the host's: a storage of the host may have the address of one of the
/// device's that has died since, or the other way round. Storages lie at multiples of 16.
void tell_apart(TensorView* views, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
        if (views[i].device == Device::Cpu) continue;
        views[i].storage = device_storage(views[i].storage);
    }
}

Range range_of(const Health& health) { return {1, 1, health.kinds() != 0}; }

}  // namespace

/// Null when the device cannot be scanned; coverage then says why.
DeviceSide* Session::device_side(const OpEvent& event) noexcept {
    if (DeviceSide* side = device_side()) return side;
    if (make_device_scanner_ == nullptr) return nullptr;
    try {
        std::call_once(device_once_, [&] {
            const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
            DeviceScanner* scanner =
                make_device_scanner_(adapter != nullptr ? &adapter->storages : nullptr, event, no_device_);
            if (scanner == nullptr) return;
            auto side = std::make_unique<DeviceSide>(*scanner);
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
                pause();
            }
        }
    };
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, start.get()) == 0) {
        start.release();
        pthread_detach(thread);
    }  // else: events are settled where the program waits for the device
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Session::device_op(DeviceSide& side, Thread& thread, const OpEvent& event) {
    const int64_t seq = counters_.ops.fetch_add(1, std::memory_order_relaxed);
    OpContext context = context_of(thread, seq);
    follow(thread, event, context);
    const Made made = note_forward(event, context);
    const auto handed = static_cast<uint64_t>(std::count_if(event.outputs, event.outputs + event.output_count,
                                                            [&](const TensorView& t) { return is_handed(event, t); }));
    DeviceEvent* kept = side.log.add(event, context, handed, side.scanner.window());
    if (kept == nullptr) {
        settle(side);
        kept = side.log.add(event, context, handed, side.scanner.window());
    }
    if (kept == nullptr) {
        for (uint64_t i = 0; i < handed; ++i) skipped("behind");
        return;
    }
    kept->made = made.record;
    kept->makes_node = made.node;
    kept->accumulates = accumulates(thread);
    HostReading* reading = kept->host;
    const auto read = [&](const TensorView& t) {
        if ((t.flags & kScannable) == 0) return;
        HostReading& now = *reading++;
        if ((t.flags & (kReturned | kWritten)) == 0) now.births = verdict_.births_in(t);
        else if (side.scanner.writes_later(t.data)) return;  // it holds what it held before
        if (bytes_of(t) > kReadBytes && (t.flags & kReturned) == 0) return;
        now.range = scanner_.range(t);
        now.known = HostReading::Known::Range;
        if (!now.range.suspicious && bytes_of(t) > kMeasuredBytes) return;
        now.health = scanner_.health(t);
        now.known = HostReading::Known::Health;
    };
    for (int32_t i = 0; i < event.input_count; ++i) read(event.inputs[i]);
    for (int32_t i = 0; i < event.output_count; ++i) read(event.outputs[i]);
    if (handed > 0) hand_over(side, *kept);
    commit(side, *kept);
    // The program has waited for the device, or is about to use what came from it.
    const bool to_host = event.op->op_class == OpClass::HostRead ||
                         std::any_of(event.outputs, event.outputs + event.output_count,
                                     [](const TensorView& t) { return t.device == Device::Cpu; });
    if (!to_host) return;
    settle(side);
    await_published(side);
}

/// Before the program acts upon a value, maybe for the last time, what is known of it should be told. The thread that
/// tells may need the interpreter's lock, which ours may have: not for ever.
void Session::await_published(DeviceSide& side) noexcept {
    constexpr int kPatience = 100;  // pauses: a fifth of a second
    for (int i = 0; i < kPatience; ++i) {
        {
            const std::lock_guard<std::mutex> lock(side.settling);
            if (!side.publishing) return;
        }
        pause();
    }
}

/// Outputs in their order, as many at a time as lie side by side.
void Session::hand_over(DeviceSide& side, DeviceEvent& event) {
    int32_t places[DeviceHit::kMaxInputs];
    TensorView operands[DeviceHit::kMaxInputs];
    DeviceScan scan{};
    scan.queue = event.op.queue;
    scan.inputs = operands;
    // An op over lists has operands for each output, far more than one that is bad could tell of.
    const bool lists = event.op.output_count > LoggedOp::kMaxOutputs;
    scan.input_count = lists ? 0 : operands_of(event.op, places);
    for (int32_t i = 0; i < scan.input_count; ++i) {
        operands[i] = event.inputs[places[i]];
        operands[i].flags |= kScannable;  // there, in its queue
    }
    scan.sequence = event.sequence;
    DeviceScanner::Taken taken = DeviceScanner::Taken::No;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        if (!is_handed(event.op, event.outputs[i])) continue;
        int32_t end = i + 1;
        while (end < event.op.output_count && is_handed(event.op, event.outputs[end])) ++end;
        scan.outputs = event.outputs + i;
        scan.output_count = end - i;
        taken = event.op.queue.known ? side.scanner.scan(scan) : DeviceScanner::Taken::No;
        if (taken != DeviceScanner::Taken::Now) break;
        scan.sequence += static_cast<uint64_t>(scan.output_count);
        i = end - 1;
    }
    event.scanned = taken == DeviceScanner::Taken::Now;
    event.captured = taken == DeviceScanner::Taken::Captured;
    if (!event.captured) return;
    event.graph = DeviceLog::keep(event);
    if (event.graph == nullptr) return;
    side.captures_due.fetch_add(1);
    side.has_graphs.store(true);
}

void Session::device_node(DeviceSide& side, const NodeEvent& event, const OpContext& context) {
    DeviceEvent* kept = side.log.add(event, context);
    if (kept == nullptr) {
        settle(side);
        kept = side.log.add(event, context);
    }
    if (kept != nullptr) commit(side, *kept);
    else skipped("behind");
}

/// False: nothing waits for the device, so that what is marked can be done at once.
bool Session::mark(DeviceSide* side, DeviceEvent::Kind kind) noexcept {
    if (side == nullptr || side->log.empty()) return false;
    DeviceEvent* kept = side->log.add(kind);
    if (kept != nullptr) commit(*side, *kept);
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

/// Judges what is known by now, oldest first.
void Session::settle(DeviceSide& side) noexcept {
    if (!on()) return;
    side.inside.fetch_add(1);
    try {
        {
            const std::lock_guard<std::mutex> lock(side.settling);
            for (;;) {
                DeviceEvent* event = side.log.front();
                const bool told = event != nullptr && side.collect(*event);
                // Before it: what reads a graph's results is told of later than the graph.
                settle_replays(side);
                if (!told) break;
                settle(side, *event);
                side.forget_answers();
                side.log.pop();
            }
        }
        publish_settled(side);
    } catch (...) {
        fail("out of memory or a failure while a device's events were judged");
    }
    side.inside.fetch_sub(1);
}

/// In the order in which it was found, so by one thread at a time. Nobody waits for that thread without end: it may ask
/// the interpreter for names.
void Session::publish_settled(DeviceSide& side) {
    for (;;) {
        Outcome outcome;
        bool names = false;
        {
            const std::lock_guard<std::mutex> lock(side.settling);
            if (side.publishing) return;
            if (side.outcome.escaped.empty() && side.outcome.contaminated.empty() && !side.names) return;
            side.publishing = true;
            std::swap(outcome, side.outcome);
            std::swap(names, side.names);
        }
        publish(outcome);
        if (names) name_state_writes();
        const std::lock_guard<std::mutex> lock(side.settling);
        side.publishing = false;
    }
}

void Session::settle(DeviceSide& side, DeviceEvent& event) {
    switch (event.kind) {
        case DeviceEvent::Kind::Op: settle_op(side, event); break;
        case DeviceEvent::Kind::Node:
            tell_apart(event.inputs, event.node.input_count);
            tell_apart(event.outputs, event.node.variable != nullptr ? 1 : 0);
            readings_.begin();
            for (int32_t i = 0; i < event.node.input_count; ++i) {
                TensorView& gradient = event.inputs[i];
                lineage_.mark_gradient(gradient.storage);
                if (!is_later(gradient)) continue;
                if (!readings_.knows(gradient) && verdict_.knows(gradient)) readings_.add_unknown(gradient);
                gradient.flags |= kScannable;
            }
            verdict_.node(event.node, event.context);
            readings_.end();
            break;
        case DeviceEvent::Kind::ZeroGrad: verdict_.zero_grad(); break;
        case DeviceEvent::Kind::OptimizerBegin: verdict_.optimizer_begin(side.outcome); break;
        case DeviceEvent::Kind::OptimizerEnd: side.names = true; break;
    }
}

void Session::settle_op(DeviceSide& side, DeviceEvent& event) {
    tell_apart(event.inputs, event.op.input_count);
    tell_apart(event.outputs, event.op.output_count);
    readings_.begin();
    const HostReading* host = event.host;
    const auto read_on_host = [&](const TensorView& t) {
        const HostReading& reading = *host++;
        if (reading.known == HostReading::Known::Nothing) return Range{};
        readings_.add(t, reading.range, reading.known == HostReading::Known::Health ? &reading.health : nullptr);
        return reading.range;
    };
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) == 0) continue;
        const HostReading& reading = *host;
        read_on_host(input);
        if (reading.births.empty()) continue;
        // By now the host's storage may be gone and its address another's: what it held goes by a name of its own.
        input.storage = device_storage(input.storage);
        verdict_.adopt(input, reading.births);
        if (reading.known == HostReading::Known::Nothing) readings_.add_unknown(input);
    }
    const DeviceHit* hit = nullptr;
    const TensorView* awaited = nullptr;  // an output in memory of the host that the device had still to write
    int32_t awaited_at = 0;
    uint64_t bad = 0;
    Range ranges[kMaxRanges] = {};
    size_t next = 0;
    int64_t scanned = 0;
    int64_t bytes = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        TensorView& output = event.outputs[i];
        Range range{};
        if ((output.flags & kScannable) != 0) {
            range = read_on_host(output);
            if (!was_read(range) && awaited == nullptr) {
                awaited = &output;
                awaited_at = i;
            }
        } else if (is_handed(event.op, output) && event.scanned) {
            const DeviceSide::Answer& answer = side.answers[next++];
            if (!answer.read) {
                skipped(answer.why);
            } else {
                range = answer.range;
                const DeviceHit* mine = answer.hit >= 0 ? &side.hits[static_cast<size_t>(answer.hit)] : nullptr;
                if (hit == nullptr) hit = mine;
                readings_.add(output, range, mine != nullptr ? &mine->output : nullptr);
                ++scanned;
                bytes += bytes_of(output);
            }
            output.flags |= kScannable;
        } else if (is_later(output)) {
            output.flags |= kScannable;  // its place is known, its values are not
            if (writes_now(event.op) && !event.captured) skipped("cuda");
        } else {
            counters_.integers.fetch_add(1, std::memory_order_relaxed);
        }
        if (was_read(range) && range.suspicious) bad |= uint64_t(1) << std::min(i, 63);
        if (i < kMaxRanges) ranges[i] = range;
    }
    counters_.scanned.fetch_add(scanned, std::memory_order_relaxed);
    counters_.bytes.fetch_add(bytes, std::memory_order_relaxed);
    int32_t places[DeviceHit::kMaxInputs];
    const int32_t operands = operands_of(event.op, places);
    for (int32_t i = 0; hit != nullptr && i < hit->input_count; ++i) {
        const DeviceHit::Input& input = hit->inputs[i];
        if (input.index < 0 || input.index >= operands) continue;
        readings_.add(event.inputs[places[input.index]], range_of(input.health), &input.health);
    }
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        TensorView& input = event.inputs[i];
        if (!is_later(input)) continue;
        if (const auto it = side.replayed.find(input.storage);
            it != side.replayed.end() && it->second < event.context.step) {
            side.replayed.erase(it);
            readings_.forget(input.storage);
            verdict_.forget(input);
        }
        if (!readings_.knows(input) && verdict_.knows(input)) readings_.add_unknown(input);
        input.flags |= kScannable;
    }
    if (awaited != nullptr && operands == 1 && readings_.knows(event.inputs[places[0]])) {  // a copy
        const TensorView& copied = event.inputs[places[0]];
        const Range range = readings_.range(copied);
        const Health health = readings_.health(copied);
        readings_.add(*awaited, range, readings_.measures(copied) ? &health : nullptr);
        if (range.suspicious) bad |= uint64_t(1) << std::min(awaited_at, 63);
        if (awaited_at < kMaxRanges) ranges[awaited_at] = range;
    }
    if (event.graph != nullptr) {
        side.captured.push_back(event.graph);
        side.captures_due.fetch_sub(1);
    }
    trace(event.op, event.context);
    narrow_state(event.op, event.context);
    judge(event.op, event.context, bad, ranges, {event.made, event.makes_node}, event.accumulates, side.outcome);
    readings_.end();
    next = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!is_later(output) || is_view(event.op, output)) continue;
        const DeviceSide::Answer* answer =
            is_handed(event.op, output) && event.scanned ? &side.answers[next++] : nullptr;
        if (answer == nullptr || !answer->read) {
            readings_.forget(output.storage);
        } else {
            readings_.wrote(output, answer->range,
                            answer->hit >= 0 ? &side.hits[static_cast<size_t>(answer->hit)].output : nullptr);
        }
    }
}

void Session::settle_replays(DeviceSide& side) {
    if (side.captured.empty() || side.captures_due.load() > 0) return;
    uint64_t sequence = 0;
    DeviceHit hit;
    while (side.scanner.next_replayed(sequence, hit)) {
        if (const DeviceEvent* event = side.captured_at(sequence)) settle_replay(side, *event, sequence, hit);
    }
}

/// One bad output of an op in a graph, each time the graph makes it.
void Session::settle_replay(DeviceSide& side, const DeviceEvent& event, uint64_t sequence, const DeviceHit& hit) {
    tell_apart(event.inputs, event.op.input_count);
    tell_apart(event.outputs, event.op.output_count);
    readings_.begin();
    uint64_t number = event.sequence;
    uint64_t bad = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        TensorView& output = event.outputs[i];
        if (!is_handed(event.op, output)) continue;
        output.flags &= ~uint32_t(kScannable);
        if (number++ != sequence) continue;
        output.flags |= kScannable;
        bad = uint64_t(1) << std::min(i, 63);
        readings_.add(output, range_of(hit.output), &hit.output);
        readings_.wrote(output, range_of(hit.output), &hit.output);
        side.replayed[output.storage] = steps_.count();
    }
    int32_t places[DeviceHit::kMaxInputs];
    const int32_t operands = operands_of(event.op, places);
    for (int32_t i = 0; i < hit.input_count; ++i) {
        const DeviceHit::Input& input = hit.inputs[i];
        if (input.index < 0 || input.index >= operands) continue;
        TensorView& operand = event.inputs[places[input.index]];
        readings_.add(operand, range_of(input.health), &input.health);
        operand.flags |= kScannable;
    }
    OpContext context = event.context;
    context.step = steps_.count();
    Range ranges[kMaxRanges] = {};
    judge(event.op, context, bad, ranges, {event.made, event.makes_node}, event.accumulates, side.outcome);
    readings_.end();
}

/// Waits for what the device still has to do, as long as it gets on with it. For the end of the program.
void Session::drain(DeviceSide& side) noexcept {
    constexpr int kPatience = 1000;  // pauses without an answer: two seconds
    side.scanner.flush();
    side.ending.store(true);
    for (int idle = 0; idle < kPatience && side.inside.load() > 0; ++idle) pause();
    for (int idle = 0; idle < kPatience && on();) {
        const int64_t before = side.log.count();
        settle(side);
        if (side.log.empty()) return;
        idle = side.log.count() < before ? 0 : idle + 1;
        pause();
    }
}

}  // namespace numsan
