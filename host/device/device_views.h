// Tensors of an event that touches a device's memory: which of them the scanner is shown, and by what names they go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "host/base/device_scanner.h"
#include "host/base/tensor_bytes.h"
#include "host/device/device_log.h"
#include "host/device/device_readings.h"
#include "host/event/op_log.h"
#include "host/ops/op_traits.h"
#include "host/verdict/verdict.h"

namespace numsan {

inline bool is_later(const TensorView& t) { return (t.flags & kLater) != 0; }

/// An op whose results on the device are there when its queue gets to them. A collective's come from elsewhere.
inline bool writes_now(const OpEvent& event) {
    return event.op->op_class != OpClass::Allocation && event.op->op_class != OpClass::Collective;
}

/// In memory that the queue's device may read: that of another one need not be.
inline bool is_here(const DeviceQueue& queue, const TensorView& t) {
    return is_later(t) && t.device_index == queue.device;
}

/// Output `i` is for the scanner to read; `read` as in DeviceEvent.
inline bool is_handed(const OpEvent& event, int32_t i, OutputSet read) {
    const TensorView& output = event.outputs[i];
    return is_here(event.queue, output) && writes_now(event) && read.contains(i) && !is_view(event, output);
}

/// The operands of output `i` that the scanner is shown, by their places among the op's inputs.
inline int32_t operands_of(const OpEvent& event, int32_t i, int32_t (&places)[DeviceHit::kMaxInputs]) {
    const bool lists = is_over_lists(event) && event.output_count > 0;
    if (!lists && event.output_count > LoggedOp::kMaxOutputs) return 0;  // which of them is not known
    int32_t count = 0;
    const int32_t members = lists ? event.input_count - event.input_count % event.output_count : event.input_count;
    for (int32_t k = lists ? i : 0; k < members && count < DeviceHit::kMaxInputs; k += lists ? event.output_count : 1) {
        if (is_here(event.queue, event.inputs[k])) places[count++] = k;
    }
    return count;
}

/// The program asks whether its values are finite: it may end over the answer.
inline bool asks_whether_finite(const OpEvent& event) {
    if (event.output_count != 1 || event.input_count == 0) return false;
    if ((event.outputs[0].flags & (kLater | kScannable)) != 0 || !is_later(event.inputs[0])) return false;
    const std::string_view op = event.op->name;
    const bool itself = event.input_count == 2 && event.inputs[0].impl == event.inputs[1].impl;  // not equal: NaN
    return op == "aten::isnan" || op == "aten::isinf" || (itself && (op == "aten::eq" || op == "aten::ne"));
}

/// A value leaves the computation: backward() starts from it, the host is given it, or the answer to a question on it.
inline bool leaves_device(const OpEvent& event) {
    if (event.op->op_class == OpClass::HostRead || is_root(event) || asks_whether_finite(event)) return true;
    if (event.op->op_class == OpClass::Collective) return is_library_call(event.op->name);  // shown before it is made
    return std::any_of(event.outputs, event.outputs + event.output_count,
                       [](const TensorView& t) { return t.device == Device::Cpu && (t.flags & kScannable) != 0; });
}

inline const char* begin_of(const TensorView& t) { return static_cast<const char*>(t.data); }

/// Behind its last element in memory.
inline const char* end_of(const TensorView& t) {
    int64_t extent = 1;
    for (int16_t i = 0; i < t.ndim; ++i) extent += (t.sizes[i] - 1) * t.strides[i];
    return begin_of(t) + extent * info(t.dtype).element_bytes();
}

/// In one storage: all of `part` is of `whole`, which has no gaps.
inline bool has_all_of(const TensorView& whole, const TensorView& part) {
    return bytes_of(whole) == end_of(whole) - begin_of(whole) && begin_of(whole) <= begin_of(part) &&
           end_of(part) <= end_of(whole);
}

inline bool meet(const TensorView& a, const TensorView& b) {
    return a.numel != 0 && begin_of(a) < end_of(b) && begin_of(b) < end_of(a);
}

/// A device's events are judged later than the host's: a storage of the host may have the address of one of the
/// device's that has died since, or the other way round. Storages lie at multiples of 16.
inline void distinguish(TensorView* views, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
        if (views[i].device != Device::Cpu) views[i].storage = device_storage(views[i].storage);
    }
}

/// Of a tensor that was looked at closely. The other values of a bad one are not known.
Range range_of(const Health& health, DType dtype);

}  // namespace numsan
