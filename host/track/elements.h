// Single elements of a tensor in the host's memory, whatever its strides.
#pragma once

#include "host/base/tensor_memory.h"
#include "host/base/tensor_view.h"
#include "host/base/value_classes.h"

namespace numsan {

/// Where logical (row-major) element `index` lies, in elements from the first.
inline int64_t offset_of(const TensorView& t, int64_t index) {
    int64_t offset = 0;
    for (int d = t.ndim - 1; d >= 0; --d) {
        const int64_t size = t.sizes[d];
        offset += index % size * t.strides[d];
        index /= size;
    }
    return offset;
}

/// Pattern of a real element without its sign.
inline uint64_t element_magnitude(const TensorView& t, int64_t index, bool* negative = nullptr) {
    const DTypeInfo& type = info(t.dtype);
    uint64_t bits = 0;
    load_element(static_cast<const char*>(t.data) + offset_of(t, index) * type.lane_bytes, &bits, type.lane_bytes);
    if (negative != nullptr) *negative = (bits & type.sign_mask()) != 0;
    return bits & type.magnitude_mask();
}

/// Value of a real element that is finite.
inline double element(const TensorView& t, int64_t index) {
    bool negative = false;
    const double magnitude = decode_magnitude(element_magnitude(t, index, &negative), info(t.dtype));
    return negative ? -magnitude : magnitude;
}

}  // namespace numsan
