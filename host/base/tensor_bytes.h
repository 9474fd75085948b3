// How large the elements of a tensor are, of floats and of integers.
#pragma once

#include <cstdint>

#include "host/base/tensor_view.h"

namespace numsan {

inline int64_t element_bytes(const TensorView& t) {
    return t.integer != IntegerType::None ? info(t.integer).bytes : info(t.dtype).element_bytes();
}

/// Of all its elements, which may lie apart in its storage.
inline int64_t bytes_of(const TensorView& t) { return t.numel * element_bytes(t); }

}  // namespace numsan
