// Builds the two walks of a tensor: by address, and by logical index.
#include "host/scan/layout.h"

namespace numsan {
namespace {

// Appends a dimension, or widens the last one when the new one continues it.
void append(Layout& layout, const WalkDim& dim) {
    if (layout.ndim > 0) {
        WalkDim& last = layout.dims[layout.ndim - 1];
        if (dim.stride == last.stride * last.size && dim.weight == last.weight * last.size) {
            last.size *= dim.size;
            return;
        }
    }
    layout.dims[layout.ndim++] = dim;
}

// Gives the kernels two loops to run, whatever the tensor is.
void pad(Layout& layout) {
    while (layout.ndim < 2) layout.dims[layout.ndim++] = WalkDim{1, 0, 0};
}

// More dimensions of size two or more than fit mean a number of elements that no memory holds.
bool has_nothing(const TensorView& tensor) {
    if (tensor.data == nullptr) return true;
    int wide = 0;
    for (int d = 0; d < tensor.ndim; ++d) {
        if (tensor.sizes[d] <= 0) return true;
        wide += tensor.sizes[d] > 1;
    }
    return wide > kMaxDims - 2;
}

Layout start(const TensorView& tensor) {
    Layout layout;
    layout.base = static_cast<const unsigned char*>(tensor.data);
    layout.repeat = 1;
    layout.ndim = 0;
    return layout;
}

}  // namespace

Layout memory_order(const TensorView& tensor) {
    Layout layout = start(tensor);
    if (has_nothing(tensor)) return layout;
    const DTypeInfo& type = info(tensor.dtype);
    WalkDim sorted[kMaxDims];
    int count = 0;
    for (int d = 0; d < tensor.ndim; ++d) {
        const int64_t size = tensor.sizes[d];
        if (size == 1) continue;  // its stride means nothing and may be anything
        int64_t stride = tensor.strides[d] * int64_t(type.element_bytes());
        if (stride == 0) {
            layout.repeat *= size;
            continue;
        }
        if (stride < 0) {
            layout.base += stride * (size - 1);
            stride = -stride;
        }
        int at = count++;
        for (; at > 0 && sorted[at - 1].stride > stride; --at) sorted[at] = sorted[at - 1];
        sorted[at] = WalkDim{size, stride, 0};
    }
    append(layout, WalkDim{type.lanes, type.lane_bytes, 0});
    for (int i = 0; i < count; ++i) append(layout, sorted[i]);
    // A real element left a loop of one round: drop it unless it is all there is.
    if (layout.dims[0].size == 1 && layout.ndim > 1) {
        for (int d = 1; d < layout.ndim; ++d) layout.dims[d - 1] = layout.dims[d];
        --layout.ndim;
    }
    pad(layout);
    return layout;
}

Layout logical_order(const TensorView& tensor) {
    Layout layout = start(tensor);
    if (has_nothing(tensor)) return layout;
    int64_t weight = 1;
    for (int d = tensor.ndim - 1; d >= 0; --d) {
        const int64_t size = tensor.sizes[d];
        if (size == 1) continue;
        const int64_t stride = tensor.strides[d] * int64_t(info(tensor.dtype).element_bytes());
        if (stride != 0) append(layout, WalkDim{size, stride, weight});
        weight *= size;
    }
    pad(layout);
    return layout;
}

}  // namespace numsan
