#include "host/device/device_past.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "host/device/device_look_back.h"
#include "host/device/device_views.h"

namespace numsan {

/// By lineage, which forgets, and by the ops that are looked back at.
OpSeq DevicePast::last_write(const LastWrites& writes, const void* storage) const {
    const auto it = writes.find(storage);
    return std::max(parts_.lineage.written_at(storage), it != writes.end() ? it->second : OpSeq::None);
}

/// Takes the device's answers on one op's results into the readings. Results that were written since, or are
/// unavailable, are marked.
void DevicePast::take_results(const DeviceEvent& event, uint64_t number, LoggedOp& op, const LastWrites& writes,
                              size_t& next) {
    const auto written_since = [&](const TensorView& t) { return last_write(writes, t.storage) > op.context.seq; };
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        TensorView& output = op.outputs[i];
        output.flags &= ~uint32_t(kScannable);
        if (is_later(output) && op.unread.contains(i)) output.flags |= kUnavailable;
    }
    const std::vector<DeviceLookBack::Looked>& looked = event.look_back->looked;
    for (; next < looked.size() && looked[next].op <= number; ++next) {
        if (looked[next].op != number) continue;  // pushed out of the log
        const DeviceLookBack::Looked& here = looked[next];
        const DeviceSide::Answer& answer = side_.answers[event.handed + event.watched + next];
        TensorView& tensor = here.operand ? op.inputs[here.place] : op.outputs[here.place];
        if (!answer.read || written_since(tensor)) continue;
        const DeviceHit* hit = side_.hit_of(answer);
        readings_.add(tensor, answer.range, hit != nullptr ? &hit->output : nullptr);
        readings_.wrote(tensor, answer.range, hit != nullptr ? &hit->output : nullptr);
        tensor.flags = (tensor.flags & ~uint32_t(kUnavailable)) | kScannable;
        if (here.operand) continue;
        if (answer.range.suspicious) op.bad.add(here.place);
        int32_t of = 0;
        for (int32_t k = 0; hit != nullptr && k < op.event.input_count; ++k) {
            if ((here.with & (1u << k)) == 0) continue;
            for (int32_t h = 0; h < hit->input_count && !written_since(op.inputs[k]); ++h) {
                if (hit->inputs[h].index != of) continue;
                readings_.add(op.inputs[k], range_of(hit->inputs[h].health, op.inputs[k].dtype),
                              &hit->inputs[h].health);
                op.inputs[k].flags |= kScannable;
            }
            ++of;
        }
    }
}

/// Marks the operands of which nothing is known, once all results are taken. `answered`: storages of which the device
/// has reported by now.
void DevicePast::mark_operands(LoggedOp& op, uint8_t there, const std::set<const void*>& answered,
                               const LastWrites& writes) {
    op.context.unavailable = op.dropped;
    for (int32_t i = 0; i < op.event.input_count; ++i) {
        TensorView& input = op.inputs[i];
        if (input.device == Device::Cpu) {  // its memory may be gone by now
            input.flags &= ~uint32_t(kScannable);
            continue;
        }
        if (!is_later(input) || (input.flags & kScannable) != 0) continue;
        const bool same = last_write(writes, input.storage) <= op.context.seq;
        if (written_by(op.event, input) || (same && answered.count(input.storage) != 0 && readings_.knows(input))) {
            input.flags |= kScannable;
        } else if (!same || (there & (1u << i)) == 0) {
            input.flags |= kUnavailable;
            ++op.context.unavailable;
        }
    }
}

bool DevicePast::is_explained(TensorView tensor, const DeviceHit* hit) {
    tensor.storage = device_storage(tensor.storage);
    const Ledger::Entry known = parts_.verdict.contents_of(tensor).births;
    const KindSet kinds = hit != nullptr ? hit->output.kinds() : KindSet(kNaN | kAnyInf);
    return std::all_of(std::begin(kNonFiniteKinds), std::end(kNonFiniteKinds),
                       [&](Kind kind) { return (kinds & kind) == 0 || known.of(kind) != 0; });
}

void DevicePast::look_back(const DeviceEvent& event) {
    bool unknown = false;
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        const DeviceSide::Answer* answer = side_.watched_answer(event, i);
        const bool bad = answer != nullptr && answer->range.suspicious;
        unknown = unknown || (bad && !is_explained(event.inputs[i], side_.hit_of(*answer)));
    }
    if (unknown || is_root(event.op)) side_.alarm(event.context.step);
    if (unknown && event.look_back == nullptr) look_behind_watched(event);
    if (!unknown || event.look_back == nullptr) return;
    const DeviceLookBack& asked = *event.look_back;
    std::deque<std::pair<uint64_t, LoggedOp>> found;
    side_.unread.copy(asked.begin, asked.end, found);
    std::vector<LoggedOp*> ops;
    std::set<const void*> answered;
    LastWrites writes;
    for (auto& [number, op] : found) {
        distinguish(op.inputs, op.event.input_count);
        distinguish(op.outputs, op.event.output_count);
        for (int32_t i = 0; i < op.event.output_count; ++i) {
            if (!is_view(op.event, op.outputs[i])) writes[op.outputs[i].storage] = op.context.seq;
        }
    }
    readings_.begin();
    size_t next = 0;
    for (auto& [number, op] : found) {
        take_results(event, number, op, writes, next);
        for (int32_t i = 0; i < op.event.input_count; ++i) {
            if ((op.inputs[i].flags & kScannable) != 0) answered.insert(op.inputs[i].storage);
        }
        for (int32_t i = 0; i < op.event.output_count; ++i) {
            if ((op.outputs[i].flags & kScannable) != 0) answered.insert(op.outputs[i].storage);
        }
        ops.push_back(&op);
    }
    auto there = asked.there.begin();
    for (auto& [number, op] : found) {
        while (there != asked.there.end() && there->op < number) ++there;
        mark_operands(op, there != asked.there.end() && there->op == number ? there->inputs : 0, answered, writes);
    }
    parts_.past.judge(ops, side_.outcome);
    readings_.end();
}

/// Nothing was asked for, as another look back was a moment ago or one would have been too long. The op that wrote the
/// value last is in the log.
void DevicePast::look_behind_watched(const DeviceEvent& event) {
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        const DeviceSide::Answer* answer = side_.watched_answer(event, i);
        if (answer == nullptr || !answer->range.suspicious) continue;
        const DeviceHit* hit = side_.hit_of(*answer);
        if (!is_explained(event.inputs[i], hit)) look_behind(event, event.inputs[i], answer->range, hit);
    }
}

void DevicePast::look_behind(const DeviceEvent& event, const TensorView& tensor, const Range& range,
                             const DeviceHit* hit) {
    std::deque<std::pair<uint64_t, LoggedOp>> found;
    side_.unread.copy(0, ~uint64_t(0), found);
    while (!found.empty() && found.back().second.context.seq >= event.context.seq) found.pop_back();
    const void* storage = device_storage(tensor.storage);
    LoggedOp* writer = nullptr;
    int32_t place = 0;
    OpSeq last = OpSeq::None;  // write of the storage
    std::vector<LoggedOp*> ops;
    readings_.begin();
    for (auto& [number, op] : found) {
        distinguish(op.inputs, op.event.input_count);
        distinguish(op.outputs, op.event.output_count);
        op.context.unavailable = op.dropped;
        for (int32_t i = 0; i < op.event.input_count; ++i) {
            TensorView& input = op.inputs[i];
            input.flags &= ~uint32_t(kScannable);
            // A gradient that another leaf was handed is known, whatever read it before.
            if (is_later(input) && parts_.lineage.written_at(input.storage) <= op.context.seq &&
                readings_.knows(input)) {
                input.flags |= kScannable;
            } else if (is_later(input) && !is_parameter(input)) {
                input.flags |= kUnavailable;
                ++op.context.unavailable;
            }
        }
        for (int32_t i = 0; i < op.event.output_count; ++i) {
            TensorView& output = op.outputs[i];
            output.flags &= ~uint32_t(kScannable);
            if (is_later(output) && op.unread.contains(i)) output.flags |= kUnavailable;
            if (output.storage != storage || is_view(op.event, output)) continue;
            last = op.context.seq;
            if (!meet(output, tensor)) continue;  // another part of the storage
            writer = has_all_of(output, tensor) ? &op : nullptr;
            place = i;
        }
        ops.push_back(&op);
    }
    // A later one may have been read, so that it is not in the log.
    if (writer != nullptr && parts_.lineage.written_at(storage) <= last) {
        TensorView& output = writer->outputs[place];
        output.flags = (output.flags & ~uint32_t(kUnavailable)) | kScannable;
        writer->bad.add(place);
        readings_.add(output, range, hit != nullptr ? &hit->output : nullptr);
        parts_.past.judge(ops, side_.outcome);
    }
    readings_.end();
}

}  // namespace numsan
