// The look back on a device: asked for when a value leaves, judged when the device has told that it was bad.
#include "host/session/device_look_back.h"

#include <set>
#include <utility>

#include "host/ops/effect.h"
#include "host/session/device_views.h"
#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {

LookBackScans::LookBackScans(OpLog& log, const DeviceQueue& queue, std::vector<const void*>& pinned)
    : log_(log), queue_(queue) {
    look_back_->begin = ~uint64_t(0);
    log.each([this](uint64_t number, const LoggedOp& op) { keep(number, op); });
    const int64_t* dims = dims_.data();
    for (TensorView& view : views_) {
        view.sizes = dims;
        view.strides = dims + view.ndim;
        dims += ptrdiff_t(2) * view.ndim;
    }
    for (const Kept& op : ops_) choose(op, pinned);
    for (const TensorView& view : views_) {
        if (is_here(queue_, view)) log.storages().unwatch(view.storage);
    }
}

void LookBackScans::keep(uint64_t number, const LoggedOp& op) {
    look_back_->begin = std::min(look_back_->begin, number);
    look_back_->end = number + 1;
    const DeviceQueue& queue = op.event.queue;
    if (!queue.known || queue.stream != queue_.stream || queue.device != queue_.device) {
        ++elsewhere_;
        return;
    }
    ops_.push_back({number, op.unread, is_decided_by_ranges(traits_of(op.event)), op.event.input_count,
                    op.event.output_count, views_.size()});
    for (int32_t i = 0; i < op.event.input_count; ++i) keep(op.inputs[i]);
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        keep(op.outputs[i]);
        if (!is_view(op.event, op.outputs[i])) last_writer_[op.outputs[i].storage] = number;
    }
}

/// Under the log's lock: what it forgets meanwhile stays watched.
void LookBackScans::keep(const TensorView& view) {
    views_.push_back(view);
    if (is_here(queue_, view)) log_.storages().watch(view.storage);
    dims_.insert(dims_.end(), view.sizes, view.sizes + view.ndim);
    dims_.insert(dims_.end(), view.strides, view.strides + view.ndim);
}

void LookBackScans::choose(const Kept& op, std::vector<const void*>& pinned) {
    uint8_t with = 0;
    const size_t first_input = inputs_.size();
    for (int32_t i = 0; i < op.inputs; ++i) {
        if (!is_there(views_[op.first + static_cast<size_t>(i)], pinned)) continue;
        inputs_.push_back(views_[op.first + static_cast<size_t>(i)]);
        inputs_.back().flags |= kScannable;
        with |= static_cast<uint8_t>(1u << i);
    }
    const auto inputs = static_cast<int32_t>(inputs_.size() - first_input);
    look_back_->there.push_back({op.number, with});
    bool none_left = true;
    for (int32_t i = 0; i < op.outputs; ++i) {
        const size_t view = op.first + static_cast<size_t>(op.inputs + i);
        if (!op.unread.contains(i) || !is_there(views_[view], pinned)) continue;
        none_left = false;
        // What it was before a later op nobody can tell any more: parameters, by several ops of two steps.
        const auto last = last_writer_.find(views_[view].storage);
        if (last != last_writer_.end() && last->second > op.number) continue;
        asked_.push_back({view, first_input, inputs, false});
        look_back_->looked.push_back({op.number, static_cast<int8_t>(i), false, with});
    }
    if (!none_left) return;
    for (int32_t i = 0; i < op.inputs; ++i) {
        const TensorView& input = views_[op.first + static_cast<size_t>(i)];
        const bool asked = op.certain || (is_parameter(input) && parameters_.insert(input.storage).second);
        if ((with & (1u << i)) == 0 || !asked) continue;
        asked_.push_back({op.first + static_cast<size_t>(i), first_input, 0, true});
        look_back_->looked.push_back({op.number, static_cast<int8_t>(i), true, 0});
    }
}

bool LookBackScans::is_there(const TensorView& view, std::vector<const void*>& pinned) const {
    const bool shapeless = view.ndim == 0 && view.numel != 1;  // too many dimensions for the log
    if (!is_here(queue_, view) || shapeless || view.numel == 0) return false;
    const void* data = nullptr;
    int64_t bytes = 0;
    pinned.reserve(pinned.size() + 1);
    if (!log_.storages().pin(view.storage, &data, &bytes)) return false;
    pinned.push_back(view.storage);
    return data == view.storage_data && bytes >= view.storage_bytes;
}

DeviceScanner::Taken LookBackScans::hand_over(DeviceScanner& scanner, ScanTicket sequence) {
    std::vector<DeviceScan> scans;
    scans.reserve(asked_.size());
    for (const Asked& asked : asked_) {
        DeviceScan scan{};
        scan.queue = queue_;
        scan.outputs = &views_[asked.view];
        scan.output_count = 1;
        scan.inputs = inputs_.data() + asked.first_input;
        scan.input_count = asked.inputs;
        scan.sequence = sequence.number;
        ++sequence;
        scan.exact = asked.exact;
        scans.push_back(scan);
    }
    return scanner.scan_behind_gate(scans.data(), static_cast<int32_t>(scans.size()));
}

/// By lineage, which forgets, and by the ops that are looked back at.
int64_t Session::last_write(const LastWrites& writes, const void* storage) const {
    const auto it = writes.find(storage);
    return std::max(lineage_.written_at(storage), it != writes.end() ? it->second : -1);
}

/// Takes what the device told of one op's results into the readings. What was written since, or is gone, is marked.
void Session::take_results(const DeviceSide& side, const DeviceEvent& event, uint64_t number, LoggedOp& op,
                           const LastWrites& writes, size_t& next) {
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
        const DeviceSide::Answer& answer = side.answers[event.handed + event.watched + next];
        TensorView& tensor = here.operand ? op.inputs[here.place] : op.outputs[here.place];
        if (!answer.read || written_since(tensor)) continue;
        const DeviceHit* hit = side.hit_of(answer);
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
void Session::mark_operands(LoggedOp& op, uint8_t there, const std::set<const void*>& answered,
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

/// Whether births are known of all kinds that were found in a device's tensor. Without `hit` it may hold any.
bool Session::is_explained(TensorView tensor, const DeviceHit* hit) {
    tensor.storage = device_storage(tensor.storage);
    const Ledger::Entry known = verdict_.births_in(tensor);
    const KindSet kinds = hit != nullptr ? hit->output.kinds() : KindSet(kNaN | kAnyInf);
    return std::all_of(std::begin(kNonFiniteKinds), std::end(kNonFiniteKinds),
                       [&](Kind kind) { return (kinds & kind) == 0 || known.of(kind) != 0; });
}

void Session::look_back(DeviceSide& side, const DeviceEvent& event) {
    bool unknown = false;
    for (int32_t i = 0; i < event.op.input_count; ++i) {
        const DeviceSide::Answer* answer = watched_answer(side, event, i);
        const bool bad = answer != nullptr && answer->range.suspicious;
        unknown = unknown || (bad && !is_explained(event.inputs[i], side.hit_of(*answer)));
    }
    if (unknown || is_root(event.op)) side.alarm(event.context.step);
    if (!unknown || event.look_back == nullptr) return;
    const DeviceLookBack& asked = *event.look_back;
    std::deque<std::pair<uint64_t, LoggedOp>> found;
    side.unread.copy(asked.begin, asked.end, found);
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
        take_results(side, event, number, op, writes, next);
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
    judge_past(ops, side.outcome);
    readings_.end();
}

/// A gradient that reaches a leaf is bad, and no op is known to have made it so: the last one that wrote it is shown.
/// What it read is gone, and so is what came before.
void Session::look_behind(DeviceSide& side, const DeviceEvent& event, const TensorView& gradient, const Range& range,
                          const DeviceHit* hit) {
    std::deque<std::pair<uint64_t, LoggedOp>> found;
    side.unread.copy(0, ~uint64_t(0), found);
    while (!found.empty() && found.back().second.context.seq >= event.context.seq) found.pop_back();
    const void* storage = device_storage(gradient.storage);
    LoggedOp* writer = nullptr;
    int32_t place = 0;
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
            if (is_later(input) && lineage_.written_at(input.storage) <= op.context.seq && readings_.knows(input)) {
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
            if (output.storage != storage) continue;
            writer = &op;
            place = i;
        }
        ops.push_back(&op);
    }
    // A later one may have been read, so that it is not in the log.
    if (writer != nullptr && lineage_.written_at(storage) <= writer->context.seq) {
        TensorView& output = writer->outputs[place];
        output.flags = (output.flags & ~uint32_t(kUnavailable)) | kScannable;
        writer->bad.add(place);
        readings_.add(output, range, hit != nullptr ? &hit->output : nullptr);
        judge_past(ops, side.outcome);
    }
    readings_.end();
}

}  // namespace numsan
