// What the oracle of the scan kernels says of a tensor. How it knows: reference.cpp.
#pragma once

#include <cstdint>

#include "host/base/health.h"
#include "host/base/tensor_view.h"

namespace numsan::gpu {

/// What is true of a set of elements.
struct Summary {
    Health health;
    uint64_t largest;           // magnitude of any value, finite or not
    uint64_t smallest_nonzero;  // ~0: none
};

/// A tensor in host memory.
Summary reference_scan(const TensorView& view);

}  // namespace numsan::gpu
