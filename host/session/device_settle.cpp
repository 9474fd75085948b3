// Events of a device, judged in the program's order once it is known what the device wrote.
#include <algorithm>
#include <bit>
#include <vector>

#include "host/session/device_views.h"
#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {

/// Before the program acts upon a value, maybe for the last time, what is known of it should be told. The thread that
/// tells may need the interpreter's lock, which ours may have: not for ever.
void Session::await_published(DeviceSide& side) noexcept {
    constexpr int kPatience = 500;  // pauses: a second; a busy machine looks names up for longer than a fifth of one
    for (int i = 0; i < kPatience; ++i) {
        {
            const std::lock_guard<std::mutex> lock(side.settling);
            if (!side.publishing) return;
        }
        DeviceSide::pause();
    }
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
                const bool answered = event != nullptr && side.collect(*event);
                // Before it: what reads a graph's results is told of later than the graph.
                settle_replays(side);
                if (!answered) break;
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
        if (names) name_state_writes(verdict_.optimizer_end());
        const std::lock_guard<std::mutex> lock(side.settling);
        side.publishing = false;
    }
}

void Session::settle(DeviceSide& side, DeviceEvent& event) {
    switch (event.kind) {
        case DeviceEvent::Kind::Op: settle_op(side, event); break;
        case DeviceEvent::Kind::Node: settle_node(side, event); break;
        case DeviceEvent::Kind::ZeroGrad: verdict_.zero_grad(); break;
        case DeviceEvent::Kind::OptimizerBegin: verdict_.optimizer_begin(side.outcome); break;
        case DeviceEvent::Kind::OptimizerEnd:
            side.names = true;
            side.step_over(event.log_end);
            break;
    }
}

/// What was told of a watched operand or gradient, by its place; null: nothing.
const DeviceSide::Answer* Session::watched_answer(const DeviceSide& side, const DeviceEvent& event, int32_t i) {
    if (!event.scanned || i >= 63 || ((event.watch >> i) & 1) == 0) return nullptr;
    const int before = std::popcount(event.watch & ((uint64_t(1) << i) - 1));
    const DeviceSide::Answer& answer = side.answers[event.handed + static_cast<size_t>(before)];
    return answer.read ? &answer : nullptr;
}

void Session::settle_node(DeviceSide& side, DeviceEvent& event) {
    count_unread_leaving(side, event);
    for (int32_t i = 0; i < event.node.input_count; ++i) {
        const DeviceSide::Answer* answer = watched_answer(side, event, i);
        if (answer == nullptr || !answer->range.suspicious) continue;
        if (side.unread.usable()) side.alarm(event.context.step);
        if (side.unread.usable() && !is_explained(event.inputs[i], side.hit_of(*answer)))
            look_behind(side, event, event.inputs[i], answer->range, side.hit_of(*answer));
    }
    distinguish(event.inputs, event.node.input_count);
    distinguish(event.outputs, event.node.variable != nullptr ? 1 : 0);
    readings_.begin();
    for (int32_t i = 0; i < event.node.input_count; ++i) {
        TensorView& gradient = event.inputs[i];
        lineage_.mark_gradient(gradient.storage);
        if (!is_later(gradient)) continue;
        if (const DeviceSide::Answer* answer = watched_answer(side, event, i)) {
            const DeviceHit* hit = side.hit_of(*answer);
            readings_.add(gradient, answer->range, hit != nullptr ? &hit->output : nullptr);
        } else if (!readings_.knows(gradient) && verdict_.is_sure_of(gradient)) {
            readings_.add_unknown(gradient);
        }
        gradient.flags |= kScannable;
    }
    verdict_.node(event.node, event.context);
    readings_.end();
}

/// What was read of the host's tensors while the op ran. Operands go by names of that time.
void Session::take_host_readings(DeviceEvent& event, Range* ranges, OutputSet& bad) {
    const HostReading* host = event.host;
    const auto take = [&](const TensorView& t) {
        const HostReading& reading = *host++;
        if (reading.known == HostReading::Known::Nothing) return Range{};
        readings_.add(t, reading.range, reading.known == HostReading::Known::Health ? &reading.health : nullptr);
        return reading.range;
    };
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) == 0) continue;
        const HostReading& reading = *host;
        take(input);
        if (reading.births.empty()) continue;
        // By now the host's storage may be gone and its address another's: what it held goes by a name of its own.
        input.storage = device_storage(input.storage);
        verdict_.adopt(input, reading.births);
        if (reading.known == HostReading::Known::Nothing) readings_.add_unknown(input);
    }
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        if ((event.outputs[i].flags & kScannable) == 0) continue;
        const Range range = take(event.outputs[i]);
        if (was_read(range) && range.suspicious) bad.add(i);
        if (i < kMaxRanges) ranges[i] = range;
    }
}

/// What the device told of the op's outputs, and of the operands of bad ones. The result: those that nobody
/// looked at.
OutputSet Session::take_answers(DeviceSide& side, DeviceEvent& event, Range* ranges, OutputSet& bad) {
    OutputSet unread;
    size_t next = 0;
    OpTally tally;
    tally.add_unseen(event.unseen);
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        TensorView& output = event.outputs[i];
        if ((output.flags & kScannable) != 0) {
            tally.add(OpOutcome::Scanned);  // on the host
            continue;
        }
        if (!is_later(output)) {
            tally.add(OpOutcome::Integer);
            continue;
        }
        if (!writes_now(event.op) || event.captured) {
            output.flags |= kScannable;  // its place is known, its values are not
            tally.add(event.captured ? OpOutcome::Captured : OpTally::without_values(event.op.op->op_class));
            continue;
        }
        if (is_view(event.op, output)) {
            output.flags |= kScannable;
            tally.add(OpOutcome::View);
            continue;
        }
        const bool handed = is_handed(event.op, i, event.read);
        if (!handed || !event.scanned) {
            unread.add(i);
            tally.add(!event.read.contains(i)           ? OpOutcome::Tier
                      : is_here(event.op.queue, output) ? OpOutcome::Device
                                                        : OpOutcome::OtherDevice);
            continue;
        }
        const DeviceSide::Answer& answer = side.answers[next++];
        if (!answer.read) {
            tally.add_unseen(answer.why);
            unread.add(i);
            continue;
        }
        const DeviceHit* hit = side.hit_of(answer);
        readings_.add(output, answer.range, hit != nullptr ? &hit->output : nullptr);
        output.flags |= kScannable;
        tally.add(OpOutcome::Scanned);
        tally.bytes += bytes_of(output);
        if (answer.range.suspicious) bad.add(i);
        if (i < kMaxRanges) ranges[i] = answer.range;
        int32_t places[DeviceHit::kMaxInputs];
        const int32_t operands = hit != nullptr ? operands_of(event.op, i, places) : 0;
        for (int32_t k = 0; k < operands && hit != nullptr; ++k) {
            for (int32_t h = 0; h < hit->input_count; ++h) {
                const DeviceHit::Input& input = hit->inputs[h];
                if (input.index == k)
                    readings_.add(event.inputs[places[k]], range_of(input.health, event.inputs[places[k]].dtype),
                                  &input.health);
            }
        }
    }
    coverage_.add(tally);
    return unread;
}

/// What leaves is looked at whatever the tier: where that fails, whether it was healthy is not known.
void Session::count_unread_leaving(DeviceSide& side, const DeviceEvent& event) {
    if (event.watched == 0 || event.captured) return;
    int64_t unread = event.scanned ? 0 : event.watched;
    const char* why = "the scanner did not take them";
    for (uint32_t i = 0; event.scanned && i < event.watched; ++i) {
        const DeviceSide::Answer& answer = side.answers[event.handed + i];
        if (answer.read) continue;
        ++unread;
        why = answer.why;
    }
    if (unread == 0) return;
    const char* none = nullptr;
    side.why_unread_leaving.compare_exchange_strong(none, why);
    side.unread_leaving.fetch_add(unread, std::memory_order_relaxed);
}

void Session::settle_op(DeviceSide& side, DeviceEvent& event) {
    if (side.saw_bad(event) && side.unread.usable()) look_back(side, event);
    look_behind_bad(side, event);
    distinguish(event.inputs, event.op.input_count);
    distinguish(event.outputs, event.op.output_count);
    readings_.begin();
    OutputSet bad;
    Range ranges[kMaxRanges] = {};
    take_host_readings(event, ranges, bad);
    const OutputSet unread = take_answers(side, event, ranges, bad);
    count_unread_leaving(side, event);
    const bool leaves = leaves_device(event.op) || event.op.op->op_class == OpClass::Collective;
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        TensorView& input = event.inputs[i];
        if (!is_later(input)) continue;
        if (const DeviceSide::Answer* answer = watched_answer(side, event, i)) {
            const DeviceHit* hit = side.hit_of(*answer);
            readings_.add(input, answer->range, hit != nullptr ? &hit->output : nullptr);
            readings_.wrote(input, answer->range, hit != nullptr ? &hit->output : nullptr);
        }
        if (const auto it = side.replayed.find(input.storage);
            it != side.replayed.end() && it->second < event.context.step) {
            side.replayed.erase(it);
            readings_.forget(input.storage);
            verdict_.forget(input);
        }
        // What may be cured leaves nothing bad behind until it was read.
        if (!readings_.knows(input) && (leaves ? verdict_.is_sure_of(input) : verdict_.knows(input)))
            readings_.add_unknown(input);
        input.flags |= kScannable;
    }
    take_copied(event, ranges, bad);
    if (event.graph != nullptr) {
        side.captured.push_back(event.graph);
        side.captures_due.fetch_sub(1);
    }
    if (bad.any() && side.unread.usable()) {
        for (int32_t i = 0; i < event.op.output_count; ++i) {
            const TensorView& output = event.outputs[i];
            if (bad.contains(i) && is_parameter(output) && (output.flags & kWritten) != 0)
                side.alarm(event.context.step);
        }
    }
    trace(event.op, event.context);
    narrow_state(event.op, event.context);
    event.context.near_overflow = near_overflow(event.op, event.context, ranges);
    judge(event.op, event.context, bad, ranges, {event.made, event.makes_node}, event.accumulates, side.outcome);
    if (unread.any()) verdict_.unread(event.op, event.context, unread, side.outcome);
    readings_.end();
    size_t next = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        const bool answered = is_handed(event.op, i, event.read) && event.scanned;
        const DeviceSide::Answer* answer = answered ? &side.answers[next++] : nullptr;
        if (!is_later(output) || is_view(event.op, output)) continue;
        if (answer == nullptr || !answer->read) {
            readings_.forget(output.storage);
        } else {
            const DeviceHit* hit = side.hit_of(*answer);
            readings_.wrote(output, answer->range, hit != nullptr ? &hit->output : nullptr);
        }
    }
}

/// An output is bad, and so is an operand that no op is known to have made so: the last that wrote it was not read.
void Session::look_behind_bad(DeviceSide& side, const DeviceEvent& event) {
    if (!event.scanned || !side.unread.usable()) return;
    size_t next = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        if (!is_handed(event.op, i, event.read)) continue;
        const DeviceSide::Answer& answer = side.answers[next++];
        const DeviceHit* hit = answer.read && answer.range.suspicious ? side.hit_of(answer) : nullptr;
        int32_t places[DeviceHit::kMaxInputs];
        const int32_t operands = hit != nullptr ? operands_of(event.op, i, places) : 0;
        for (int32_t h = 0; operands > 0 && h < hit->input_count; ++h) {
            const DeviceHit::Input& input = hit->inputs[h];
            if (input.index < 0 || input.index >= operands || input.health.kinds() == 0) continue;
            const TensorView& operand = event.inputs[places[input.index]];
            DeviceHit found{};
            found.output = input.health;
            if (written_by(event.op, operand) || is_explained(operand, &found)) continue;
            look_behind(side, event, operand, range_of(input.health, operand.dtype), &found);
        }
    }
}

/// A copy to memory of the host that the device had still to write: it holds what was copied.
void Session::take_copied(const DeviceEvent& event, Range* ranges, OutputSet& bad) {
    int32_t places[DeviceHit::kMaxInputs];
    if (operands_of(event.op, 0, places) != 1) return;
    const TensorView& copied = event.inputs[places[0]];
    if (!readings_.knows(copied)) return;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (output.device != Device::Cpu || !scannable(output) || readings_.knows(output)) continue;
        const Range range = readings_.range(copied);
        const Health health = readings_.health(copied);
        readings_.add(output, range, readings_.measures(copied) ? &health : nullptr);
        if (range.suspicious) bad.add(i);
        if (i < kMaxRanges) ranges[i] = range;
        return;
    }
}

void Session::settle_replays(DeviceSide& side) {
    if (side.captured.empty() || side.captures_due.load() > 0) return;
    ScanTicket sequence;
    std::vector<ScanTicket> ended;
    while (side.scanner.next_ended(sequence.number)) ended.push_back(sequence);
    DeviceHit hit;
    while (side.scanner.next_replayed(sequence.number, hit)) {
        if (hit.output.kinds() == 0) continue;
        if (const DeviceEvent* event = side.captured_at(sequence)) settle_replay(side, *event, sequence, hit);
    }
    if (!ended.empty()) side.forget_captured(ended);
}

/// One bad output of an op in a graph, each time the graph makes it.
void Session::settle_replay(DeviceSide& side, const DeviceEvent& event, ScanTicket sequence, const DeviceHit& hit) {
    distinguish(event.inputs, event.op.input_count);
    distinguish(event.outputs, event.op.output_count);
    readings_.begin();
    ScanTicket number = event.sequence;
    OutputSet bad;
    int32_t index = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        TensorView& output = event.outputs[i];
        if (!is_handed(event.op, i, event.read)) continue;
        output.flags &= ~uint32_t(kScannable);
        const bool is_it = number == sequence;
        ++number;
        if (!is_it) continue;
        index = i;
        output.flags |= kScannable;
        bad = OutputSet::only(i);
        readings_.add(output, range_of(hit.output, output.dtype), &hit.output);
        readings_.wrote(output, range_of(hit.output, output.dtype), &hit.output);
        side.replayed[output.storage] = steps_.count();
    }
    int32_t places[DeviceHit::kMaxInputs];
    const int32_t operands = operands_of(event.op, index, places);
    for (int32_t i = 0; i < hit.input_count; ++i) {
        const DeviceHit::Input& input = hit.inputs[i];
        if (input.index < 0 || input.index >= operands) continue;
        TensorView& operand = event.inputs[places[input.index]];
        readings_.add(operand, range_of(input.health, operand.dtype), &input.health);
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
    for (int idle = 0; idle < kPatience && side.inside.load() > 0; ++idle) DeviceSide::pause();
    for (int idle = 0; idle < kPatience && on();) {
        const int64_t before = side.log.count();
        settle(side);
        if (side.log.empty()) return;
        idle = side.log.count() < before ? 0 : idle + 1;
        DeviceSide::pause();
    }
}

}  // namespace numsan
