#include "host/device/graphs/graph_replays.h"

#include <algorithm>
#include <utility>

#include "host/device/device_views.h"

namespace numsan {
namespace {

/// What a number of an event stands for: of an op its outputs, then operands that are looked at each time; of a node
/// gradients.
struct Numbered {
    int32_t output = -1, input = -1;
};

Numbered numbered(const DeviceEvent& event, ScanTicket sequence) {
    ScanTicket number = event.sequence;
    const bool node = event.kind == DeviceEvent::Kind::Node;
    for (int32_t i = 0; !node && i < event.op.output_count; ++i) {
        if (!is_handed(event.op, i, event.read)) continue;
        if (number == sequence) return {i, -1};
        ++number;
    }
    for (int32_t i = 0; event.watch >> i != 0; ++i) {
        if (((event.watch >> i) & 1) == 0) continue;
        if (number == sequence) return {-1, i};
        ++number;
    }
    return {};
}

}  // namespace

void GraphReplays::add(const DeviceEvent& event) {
    captured_.push_back(&event);
    if (event.governs) governed_.insert(event.capture);
}

void GraphReplays::judge() {
    if (captured_.empty() || side_.captures_due.load() > 0) return;
    ScanTicket sequence;
    std::vector<ScanTicket> ended;
    while (side_.scanner.next_ended(sequence.number)) ended.push_back(sequence);
    const std::vector<Reported> all = take_reported();
    note_streaks(all);
    for (const Reported& one : all) {
        const DeviceEvent& event = *one.event;
        if (one.output >= 0) {
            if (stays_bad(event, one.output, one.hit)) continue;
            operand_is_bad(event, one.output, one.hit);
            output_is_bad(event, one.output, one.hit);
            continue;
        }
        explain(event, event.inputs[one.input], one.hit.output, one.hit.replay);
        event.kind == DeviceEvent::Kind::Node ? gradient_is_bad(event, one.input, one.hit)
                                              : value_leaves(event, one.input, one.hit);
    }
    if (!ended.empty()) forget(ended);
}

std::vector<GraphReplays::Reported> GraphReplays::take_reported() {
    std::vector<Reported> all;
    ScanTicket sequence;
    DeviceHit hit;
    while (side_.scanner.next_replayed(sequence.number, hit)) {
        if (hit.output.kinds() == 0) continue;
        const DeviceEvent* event = at(sequence);
        const Numbered tensor = event != nullptr ? numbered(*event, sequence) : Numbered{};
        if (tensor.output >= 0 || tensor.input >= 0) all.push_back({event, tensor.output, tensor.input, hit});
    }
    return all;
}

/// Before the first of them is judged: what led to a bad loss comes before it.
void GraphReplays::note_streaks(const std::vector<Reported>& all) {
    if (all.empty()) return;
    const int64_t lost = side_.scanner.lost();
    const bool some_lost = lost != lost_;  // a replay that reported nothing need not have been good
    lost_ = lost;
    for (const Reported& one : all) {
        if (one.output >= 0 && !is_parameter(one.event->outputs[one.output])) continue;
        const uint64_t replay = one.hit.replay;
        const auto [streak, is_new] = streaks_.try_emplace(replay >> 32, Streak{replay, replay});
        if (is_new || streak->second.last == replay) continue;
        if (streak->second.last + 1 != replay && !some_lost) streak->second.first = replay;
        streak->second.last = replay;
    }
}

/// What the ledger knows of the tensor came about in an earlier replay, and replays in between were good.
bool GraphReplays::is_of_before(const DeviceEvent& event, const TensorView& tensor, uint64_t replay) const {
    const auto left = left_.find(device_storage(tensor.storage));
    if (left == left_.end() || left->second.capture != event.capture || left->second.replay >> 32 != replay >> 32)
        return false;
    const auto streak = streaks_.find(replay >> 32);
    const bool lasts = streak != streaks_.end() && streak->second.last >= replay && streak->second.first <= replay;
    return left->second.replay < (lasts ? streak->second.first : replay);
}

const DeviceEvent* GraphReplays::at(ScanTicket sequence) const {
    const auto after = std::upper_bound(captured_.begin(), captured_.end(), sequence,
                                        [](ScanTicket s, const DeviceEvent* event) { return s < event->sequence; });
    if (after == captured_.begin()) return nullptr;
    const DeviceEvent* event = *(after - 1);
    return sequence < event->sequence + event->handed + event->watched ? event : nullptr;
}

/// Events of graphs that are gone, by the numbers of some of their outputs.
void GraphReplays::forget(const std::vector<ScanTicket>& ended) {
    std::set<uint64_t> gone;
    for (const ScanTicket sequence : ended) {
        if (const DeviceEvent* event = at(sequence)) gone.insert(event->capture);
    }
    const auto is_gone = [&](const DeviceEvent* event) {
        if (gone.count(event->capture) == 0) return false;
        DeviceLog::drop(event);
        return true;
    };
    captured_.erase(std::remove_if(captured_.begin(), captured_.end(), is_gone), captured_.end());
    std::erase_if(left_, [&](const auto& entry) { return gone.count(entry.second.capture) != 0; });
    for (const uint64_t capture : gone) governed_.erase(capture);
}

/// The op in the graph that wrote a tensor last before the event, where scans take turns: it may not have had its own.
const DeviceEvent* GraphReplays::writer_of(const DeviceEvent& event, const TensorView& tensor, int32_t& output) const {
    if (governed_.count(event.capture) == 0) return nullptr;
    const void* storage = device_storage(tensor.storage);
    const auto before = [](const DeviceEvent* e, ScanTicket sequence) { return e->sequence < sequence; };
    auto next = std::find(std::lower_bound(captured_.begin(), captured_.end(), event.sequence, before), captured_.end(),
                          &event);
    while (next != captured_.begin()) {
        const DeviceEvent& earlier = **--next;
        if (earlier.capture != event.capture || earlier.kind != DeviceEvent::Kind::Op) continue;
        for (output = 0; output < earlier.op.output_count; ++output) {
            const TensorView& written = earlier.outputs[output];
            if (device_storage(written.storage) != storage || is_view(earlier.op, written) || !meet(written, tensor))
                continue;
            return is_handed(earlier.op, output, earlier.read) && has_all_of(written, tensor) ? &earlier : nullptr;
        }
    }
    return nullptr;
}

/// What the op read is gone, but replays before have shown why its output is bad, and it has been so since.
bool GraphReplays::stays_bad(const DeviceEvent& event, int32_t output, const DeviceHit& hit) {
    int32_t places[DeviceHit::kMaxInputs];
    if (governed_.count(event.capture) == 0 || hit.input_count == operands_of(event.op, output, places)) return false;
    const TensorView& bad = event.outputs[output];
    const void* storage = device_storage(bad.storage);
    const auto left = left_.find(storage);
    if (left == left_.end() || left->second.capture != event.capture || left->second.replay >> 32 != hit.replay >> 32 ||
        left->second.replay >= hit.replay || is_of_before(event, bad, hit.replay) || !past_.is_explained(bad, &hit))
        return false;
    left->second.replay = hit.replay;
    side_.replayed[storage] = parts_.contexts.steps().count();
    return true;
}

/// A tensor that the event read was bad. Where no op is known to have made it so in this replay, the last one that
/// wrote it is shown to the verdict.
void GraphReplays::explain(const DeviceEvent& event, const TensorView& tensor, const Health& health, uint64_t replay) {
    DeviceHit found{};
    found.output = health;
    found.replay = replay;
    if (!is_of_before(event, tensor, replay) && past_.is_explained(tensor, &found)) return;
    int32_t output = 0;
    const DeviceEvent* writer = writer_of(event, tensor, output);
    if (writer != nullptr) output_is_bad(*writer, output, found);
}

void GraphReplays::operand_is_bad(const DeviceEvent& event, int32_t output, const DeviceHit& hit) {
    int32_t places[DeviceHit::kMaxInputs];
    const int32_t operands = operands_of(event.op, output, places);
    for (int32_t i = 0; i < hit.input_count; ++i) {
        const DeviceHit::Input& input = hit.inputs[i];
        if (input.index < 0 || input.index >= operands || input.health.kinds() == 0) continue;
        const TensorView& operand = event.inputs[places[input.index]];
        if (!written_by(event.op, operand)) explain(event, operand, input.health, hit.replay);
    }
}

/// The event's, in the step that runs now.
OpContext GraphReplays::context_of(const DeviceEvent& event) const {
    OpContext context = event.context;
    context.step = parts_.contexts.steps().count();
    return context;
}

void GraphReplays::take_bad(TensorView& tensor, const Health& health) {
    tensor.flags |= kScannable;
    const Range range = range_of(health, tensor.dtype);
    readings_.add(tensor, range, &health);
    readings_.wrote(tensor, range, &health);
    side_.replayed[tensor.storage] = parts_.contexts.steps().count();
}

/// Once all that is known of the event's tensors is read.
void GraphReplays::judge(const DeviceEvent& event, const OpContext& context, OutputSet bad) {
    OpContext mine = context;
    Range ranges[kMaxRanges] = {};
    parts_.judge.judge(event.op, mine, bad, ranges, {event.made, event.makes_node}, event.accumulates, side_.outcome);
    readings_.end();
}

void GraphReplays::output_is_bad(const DeviceEvent& event, int32_t output, const DeviceHit& hit) {
    distinguish(event.inputs, event.op.input_count);
    distinguish(event.outputs, event.op.output_count);
    readings_.begin();
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        TensorView& other = event.outputs[i];
        if (is_handed(event.op, i, event.read)) other.flags &= ~uint32_t(kScannable);
    }
    take_bad(event.outputs[output], hit.output);
    left_[event.outputs[output].storage] = {event.capture, hit.replay};
    OpContext context = context_of(event);
    int32_t places[DeviceHit::kMaxInputs];
    const int32_t operands = operands_of(event.op, output, places);
    for (int32_t k = 0; k < operands; ++k) {
        TensorView& operand = event.inputs[places[k]];
        const auto end = hit.inputs + hit.input_count;
        const auto input = std::find_if(hit.inputs, end, [&](const DeviceHit::Input& in) { return in.index == k; });
        if (input != end) {
            readings_.add(operand, range_of(input->health, operand.dtype), &input->health);
            operand.flags = (operand.flags & ~uint32_t(kUnavailable)) | kScannable;
        } else if (!written_by(event.op, operand) && governed_.count(event.capture) != 0) {
            operand.flags = (operand.flags & ~uint32_t(kScannable)) | kUnavailable;
            ++context.unavailable;
        }
    }
    judge(event, context, OutputSet::only(output));
}

/// The op starts a backward pass from it.
void GraphReplays::value_leaves(const DeviceEvent& event, int32_t input, const DeviceHit& hit) {
    distinguish(event.inputs, event.op.input_count);
    distinguish(event.outputs, event.op.output_count);
    readings_.begin();
    take_bad(event.inputs[input], hit.output);
    judge(event, context_of(event), OutputSet{});
}

/// It reaches a leaf.
void GraphReplays::gradient_is_bad(const DeviceEvent& event, int32_t place, const DeviceHit& hit) {
    distinguish(event.inputs, event.node.input_count);
    distinguish(event.outputs, event.node.variable != nullptr ? 1 : 0);
    readings_.begin();
    for (int32_t i = 0; i < event.node.input_count; ++i) {
        TensorView& gradient = event.inputs[i];
        gradient.flags = i == place ? gradient.flags | kScannable : gradient.flags & ~uint32_t(kScannable);
    }
    const TensorView& gradient = event.inputs[place];
    parts_.lineage.mark_gradient(gradient.storage);
    readings_.add(gradient, range_of(hit.output, gradient.dtype), &hit.output);
    parts_.verdict.node(event.node, context_of(event));
    readings_.end();
}

}  // namespace numsan
