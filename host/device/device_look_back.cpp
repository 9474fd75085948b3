// The look back on a device is asked for when a value leaves, and judged (DevicePast) once that was found to be bad.
#include "host/device/device_look_back.h"

#include <algorithm>

#include "host/device/device_views.h"
#include "host/ops/effect.h"

namespace numsan {

LookBackScans::LookBackScans(OpLog& log, const DeviceQueue& queue, std::vector<const void*>& pinned, uint64_t capture)
    : log_(log), queue_(queue), capture_(capture) {
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
    if (op.graph.capture != capture_) return;
    look_back_->begin = std::min(look_back_->begin, number);
    look_back_->end = number + 1;
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        if (!is_view(op.event, op.outputs[i])) last_writer_[op.outputs[i].storage] = number;
    }
    const DeviceQueue& queue = op.event.queue;
    if (!queue.known || queue.stream != queue_.stream || queue.device != queue_.device) {
        ++elsewhere_;
        return;
    }
    ops_.push_back({number,
                    op.unread,
                    is_decided_by_ranges(traits_of(op.event)),
                    op.event.input_count,
                    op.event.output_count,
                    views_.size(),
                    {}});
    ScanTicket next = op.graph.first;
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        if (!is_handed(op.event, i, OutputSet::all())) continue;
        ops_.back().numbers[i] = next;
        ++next;
    }
    for (int32_t i = 0; i < op.event.input_count; ++i) keep(op.inputs[i]);
    for (int32_t i = 0; i < op.event.output_count; ++i) {
        keep(op.outputs[i]);
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
        const TensorView& input = views_[op.first + static_cast<size_t>(i)];
        // What an op read is compared with its results at once in a graph: it is as it was then, or is not shown.
        const bool there = (capture_ == 0 || !is_written_after(input, op.number)) && is_there(input, pinned);
        // A replay's hit says which operand it means by its place among those of the op's device.
        if (!there && (capture_ == 0 || !is_here(queue_, input))) continue;
        inputs_.push_back(input);
        if (!there) continue;
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
        // What it was before a later op is not known any more: parameters, by several ops of two steps.
        if (is_written_after(views_[view], op.number)) continue;
        asked_.push_back({view, first_input, inputs, false, op.numbers[i]});
        look_back_->looked.push_back({op.number, static_cast<int8_t>(i), false, with});
    }
    if (!none_left || capture_ != 0) return;
    for (int32_t i = 0; i < op.inputs; ++i) {
        const TensorView& input = views_[op.first + static_cast<size_t>(i)];
        const bool asked = op.certain || (is_parameter(input) && parameters_.insert(input.storage).second);
        if ((with & (1u << i)) == 0 || !asked) continue;
        asked_.push_back({op.first + static_cast<size_t>(i), first_input, 0, true, {}});
        look_back_->looked.push_back({op.number, static_cast<int8_t>(i), true, 0});
    }
}

bool LookBackScans::is_written_after(const TensorView& view, uint64_t number) const {
    const auto last = last_writer_.find(view.storage);
    return last != last_writer_.end() && last->second > number;
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
        scan.sequence = capture_ != 0 ? asked.number.number : sequence.number;
        ++sequence;
        scan.exact = asked.exact;
        scans.push_back(scan);
    }
    return scanner.scan_behind_gate(scans.data(), static_cast<int32_t>(scans.size()));
}

}  // namespace numsan
