#include "host/kernels/event_views.h"

#include <algorithm>

namespace numsan {
namespace {

constexpr int64_t kStride = 1;

const void* pointer(uint64_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

/// A view of what begins at `address` in the buffer; its sizes are for the caller to set.
TensorView& EventViews::next(uint64_t address, DType dtype, const DeviceMemory::Buffer& buffer, bool is_written) {
    int32_t& count = is_written ? writes : reads;
    TensorView& view = (is_written ? written : read)[count++];
    view = {};
    view.data = view.impl = pointer(address);
    view.storage = view.storage_data = pointer(buffer.allocation);
    view.storage_bytes = buffer.allocation_bytes;
    // What it was computed from is not known: it is no more the program's data than a result.
    view.flags = kLater | (is_written ? kWritten : kRequiresGrad);
    view.device_index = device;
    view.dtype = dtype;
    view.device = Device::Cuda;
    view.argument = static_cast<int16_t>(count - 1);
    return view;
}

bool EventViews::add(const DeviceMemory& memory, uint64_t address, DType dtype, bool is_written, uint64_t end) {
    const int32_t count = is_written ? writes : reads;
    const uint32_t bytes = info(dtype).element_bytes();
    const std::optional<DeviceMemory::Buffer> buffer = memory.at(address, dtype, end);
    if (!buffer || count == kMostBuffers || address % bytes != 0) return false;
    int64_t& size = sizes_[2 * count + (is_written ? 1 : 0)];
    size = buffer->bytes / bytes;
    complete = complete && !(is_written && buffer->cut);
    if (size == 0) return true;
    TensorView& view = next(address, dtype, *buffer, is_written);
    view.numel = size;
    view.sizes = &size;
    view.strides = &kStride;
    view.flags |= kContiguous;
    view.ndim = 1;
    return true;
}

bool EventViews::add(const DeviceMemory& memory, const LibraryCall::Buffer& given, bool is_written) {
    const std::optional<DeviceMemory::Buffer> buffer = memory.at(given.address, given.dtype);
    const std::optional<int64_t> extent = given.extent();
    if (!buffer || !extent || (is_written ? writes : reads) == kMostBuffers) return false;
    const auto offset = static_cast<int64_t>(given.address - buffer->allocation);
    // What lies further than that was not looked at before, either.
    if (*extent > std::min(buffer->allocation_bytes - offset, DeviceMemory::kMostBytes)) return false;
    TensorView& view = next(given.address, given.dtype, *buffer, is_written);
    int64_t dense = 1;
    bool contiguous = true;
    for (int32_t d = given.ndim - 1; d >= 0; --d) {
        contiguous = contiguous && (given.sizes[d] == 1 || given.strides[d] == dense);
        dense *= given.sizes[d];
    }
    if (contiguous) view.flags |= kContiguous;
    view.numel = dense;
    view.sizes = given.sizes;
    view.strides = given.strides;
    view.ndim = given.ndim;
    return true;
}

bool EventViews::writes_at(uint64_t address) const {
    return std::any_of(written, written + writes, [&](const TensorView& one) { return one.data == pointer(address); });
}

void EventViews::show_in(OpEvent& event) const {
    event.inputs = read;
    event.input_count = reads;
    event.outputs = written;
    event.output_count = writes;
}

}  // namespace numsan
