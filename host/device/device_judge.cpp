#include "host/device/device_judge.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "host/device/device_views.h"
#include "host/device/host_operands.h"

namespace numsan {

void DeviceJudge::judge(DeviceEvent& event) {
    switch (event.kind) {
        case DeviceEvent::Kind::Op: op(event); break;
        case DeviceEvent::Kind::Node: node(event); break;
        case DeviceEvent::Kind::ZeroGrad: parts_.verdict.zero_grad(); break;
        case DeviceEvent::Kind::OptimizerBegin: parts_.verdict.optimizer_begin(side_.outcome); break;
        case DeviceEvent::Kind::OptimizerEnd:
            side_.names = true;
            side_.step_over(event.log_end);
            break;
    }
}

void DeviceJudge::node(DeviceEvent& event) {
    count_unread_leaving(event);
    for (int32_t i = 0; i < event.node.input_count; ++i) {
        const DeviceSide::Answer* answer = side_.watched_answer(event, i);
        if (answer == nullptr || !answer->range.suspicious) continue;
        if (side_.unread.usable()) side_.alarm(event.context.step);
        if (side_.unread.usable() && !past_.is_explained(event.inputs[i], side_.hit_of(*answer)))
            past_.look_behind(event, event.inputs[i], answer->range, side_.hit_of(*answer));
    }
    distinguish(event.inputs, event.node.input_count);
    distinguish(event.outputs, event.node.variable != nullptr ? 1 : 0);
    readings_.begin();
    for (int32_t i = 0; i < event.node.input_count; ++i) {
        TensorView& gradient = event.inputs[i];
        parts_.lineage.mark_gradient(gradient.storage);
        if (!is_later(gradient)) continue;
        if (const DeviceSide::Answer* answer = side_.watched_answer(event, i)) {
            const DeviceHit* hit = side_.hit_of(*answer);
            readings_.add(gradient, answer->range, hit != nullptr ? &hit->output : nullptr);
        } else if (!readings_.knows(gradient) && parts_.verdict.is_sure_of(gradient)) {
            readings_.add_unknown(gradient);
        }
        gradient.flags |= kScannable;
    }
    parts_.verdict.node(event.node, event.context);
    readings_.end();
    take_graph(event);
}

/// From now on its replays are reported.
void DeviceJudge::take_graph(const DeviceEvent& event) {
    if (event.graph == nullptr) return;
    replays_.add(*event.graph);
    side_.captures_due.fetch_sub(1);
}

/// What was read of the host's tensors while the op ran.
void DeviceJudge::take_host_readings(DeviceEvent& event, Range* ranges, OutputSet& bad) {
    const HostReading* host = event.host;
    const auto take = [&](const TensorView& t) {
        const HostReading& reading = *host++;
        if (reading.known == HostReading::Known::Nothing) return Range{};
        readings_.add(t, reading.range, reading.known == HostReading::Known::Health ? &reading.health : nullptr);
        return reading.range;
    };
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kScannable) == 0) continue;
        const bool unread = host->known == HostReading::Known::Nothing;
        take(input);
        if (unread && parts_.verdict.knows(input)) readings_.add_unknown(input);
    }
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        if ((event.outputs[i].flags & kScannable) == 0) continue;
        const Range range = take(event.outputs[i]);
        if (was_read(range) && range.suspicious) bad.add(i);
        if (i < kMaxRanges) ranges[i] = range;
    }
}

/// What the device reported of the op's outputs, and of the operands of bad ones. The result: those that were not
/// read.
OutputSet DeviceJudge::take_answers(DeviceEvent& event, Range* ranges, OutputSet& bad) {
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
        const DeviceSide::Answer& answer = side_.answers[next++];
        if (!answer.read) {
            tally.add_unseen(answer.why);
            unread.add(i);
            continue;
        }
        const DeviceHit* hit = side_.hit_of(answer);
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
    parts_.coverage.add(tally);
    return unread;
}

/// What leaves is looked at whatever the tier: where that fails, whether it was healthy is not known.
void DeviceJudge::count_unread_leaving(const DeviceEvent& event) {
    if (event.watched == 0 || event.captured) return;
    int64_t unread = event.scanned ? 0 : event.watched;
    const char* why = "the scanner did not take them";
    for (uint32_t i = 0; event.scanned && i < event.watched; ++i) {
        const DeviceSide::Answer& answer = side_.answers[event.handed + i];
        if (answer.read) continue;
        ++unread;
        why = answer.why;
    }
    if (unread == 0) return;
    const char* none = nullptr;
    side_.why_unread_leaving.compare_exchange_strong(none, why);
    side_.unread_leaving.fetch_add(unread, std::memory_order_relaxed);
}

void DeviceJudge::op(DeviceEvent& event) {
    if (side_.saw_bad(event) && side_.unread.usable()) past_.look_back(event);
    look_behind_bad(event);
    distinguish(event.inputs, event.op.input_count);
    distinguish(event.outputs, event.op.output_count);
    HostOperands operands(event, parts_);
    operands.rename();
    readings_.begin();
    OutputSet bad;
    Range ranges[kMaxRanges] = {};
    take_host_readings(event, ranges, bad);
    const OutputSet unread = take_answers(event, ranges, bad);
    count_unread_leaving(event);
    take_operands(event);
    take_copied(event, ranges, bad);
    take_unread(event, bad);
    take_graph(event);
    if (bad.any() && side_.unread.usable()) alarm_by(event, bad);
    parts_.contexts.trace(event.op, event.context);
    ContextBuilder::narrow_state(event.op, event.context);
    event.context.near_overflow = parts_.judge.near_overflow(event.op, event.context, ranges);
    side_.outcome.born.clear();  // those are ops of the past
    const size_t escaped = side_.outcome.escaped.size();
    parts_.judge.judge(event.op, event.context, bad, ranges, {event.made, event.makes_node}, event.accumulates,
                       side_.outcome);
    leave_to_its_thread(event, side_.outcome.escaped.size() > escaped);
    if (unread.any()) parts_.verdict.unread(event.op, event.context, unread, side_.outcome);
    readings_.end();
    operands.hand_back();
    remember_results(event);
}

/// The thread that ran the op may wait for it, see DeviceSettler::await.
void DeviceJudge::leave_to_its_thread(const DeviceEvent& event, bool escapes) {
    if (side_.awaited.erase(event.context.seq) == 0 || (side_.outcome.born.empty() && !escapes)) return;
    OpOutcomeHere& left = side_.kept_back[event.context.seq];
    left = {std::move(side_.outcome.born), event.context};
    left.context.node = nullptr;  // in the event's record
}

/// Readings of the operands: those that are watched, and what may be bad though it was not read.
void DeviceJudge::take_operands(DeviceEvent& event) {
    const bool leaves = leaves_device(event.op) || event.op.op->op_class == OpClass::Collective;
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        TensorView& input = event.inputs[i];
        if (!is_later(input)) continue;
        if (const DeviceSide::Answer* answer = side_.watched_answer(event, i)) {
            const DeviceHit* hit = side_.hit_of(*answer);
            readings_.add(input, answer->range, hit != nullptr ? &hit->output : nullptr);
            readings_.wrote(input, answer->range, hit != nullptr ? &hit->output : nullptr);
        }
        if (const auto it = side_.replayed.find(input.storage);
            it != side_.replayed.end() && it->second < event.context.step) {
            side_.replayed.erase(it);
            readings_.forget(input.storage);
            parts_.verdict.forget(input);
        }
        // What may be cured leaves nothing bad behind until it was read.
        if (!readings_.knows(input) && (leaves ? parts_.verdict.is_sure_of(input) : parts_.verdict.knows(input)))
            readings_.add_unknown(input);
        input.flags |= kScannable;
    }
}

/// A parameter was written with something bad.
void DeviceJudge::alarm_by(const DeviceEvent& event, OutputSet bad) {
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (bad.contains(i) && is_parameter(output) && (output.flags & kWritten) != 0) side_.alarm(event.context.step);
    }
}

/// What the op's results are from now on.
void DeviceJudge::remember_results(const DeviceEvent& event) {
    size_t next = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        const bool answered = is_handed(event.op, i, event.read) && event.scanned;
        const DeviceSide::Answer* answer = answered ? &side_.answers[next++] : nullptr;
        if (!is_later(output) || is_view(event.op, output)) continue;
        if (answer == nullptr || !answer->read) {
            readings_.forget(output.storage);
        } else {
            const DeviceHit* hit = side_.hit_of(*answer);
            readings_.wrote(output, answer->range, hit != nullptr ? &hit->output : nullptr);
        }
    }
}

/// An output is bad, and so is an operand that no op is known to have made so: the last that wrote it was not read.
void DeviceJudge::look_behind_bad(const DeviceEvent& event) {
    if (!event.scanned || !side_.unread.usable()) return;
    size_t next = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        if (!is_handed(event.op, i, event.read)) continue;
        const DeviceSide::Answer& answer = side_.answers[next++];
        const DeviceHit* hit = answer.read && answer.range.suspicious ? side_.hit_of(answer) : nullptr;
        int32_t places[DeviceHit::kMaxInputs];
        const int32_t operands = hit != nullptr ? operands_of(event.op, i, places) : 0;
        for (int32_t h = 0; operands > 0 && h < hit->input_count; ++h) {
            const DeviceHit::Input& input = hit->inputs[h];
            if (input.index < 0 || input.index >= operands || input.health.kinds() == 0) continue;
            const TensorView& operand = event.inputs[places[input.index]];
            DeviceHit found{};
            found.output = input.health;
            if (written_by(event.op, operand) || past_.is_explained(operand, &found)) continue;
            past_.look_behind(event, operand, range_of(input.health, operand.dtype), &found);
        }
    }
}

/// A copy to memory of the host that the device had still to write: it holds what was copied.
void DeviceJudge::take_copied(const DeviceEvent& event, Range* ranges, OutputSet& bad) {
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

/// Operands on the host that were too large to be read then may be gone by now: a copy of one says what was in it.
void DeviceJudge::take_unread(DeviceEvent& event, OutputSet bad) {
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        TensorView& input = event.inputs[i];
        if (input.device != Device::Cpu || !scannable(input) || readings_.knows(input)) continue;
        const auto is_copy = [&](const TensorView& output) {
            return output.numel == input.numel && output.dtype == input.dtype && readings_.knows(output);
        };
        const TensorView* const begin = event.outputs;
        const TensorView* const end = begin + event.op.output_count;
        const TensorView* const copy = std::find_if(begin, end, is_copy);
        if (event.op.output_count == 1 && copy != end) {
            const Range range = readings_.range(*copy);
            const Health health = readings_.health(*copy);
            readings_.add(input, range, readings_.measures(*copy) ? &health : nullptr);
            continue;
        }
        input.flags &= ~uint32_t(kScannable);
        if (!bad.any()) continue;
        input.flags |= kUnavailable;  // of another type, or one of a list
        ++event.context.unavailable;
    }
}

}  // namespace numsan
