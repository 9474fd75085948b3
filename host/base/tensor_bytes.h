// How large the elements of a tensor are, of floats and of integers.
#pragma once

#include <cstdint>

#include "host/base/tensor_view.h"

namespace numsan {

/// Of all its elements, which may lie apart in its storage.
inline int64_t bytes_of(const TensorView& t) {
    const uint32_t element = t.integer != IntegerType::None ? info(t.integer).bytes : info(t.dtype).element_bytes();
    return t.numel * static_cast<int64_t>(element);
}

}  // namespace numsan
