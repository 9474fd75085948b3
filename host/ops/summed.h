// How many elements an operator adds up.
#pragma once

#include <cstdint>

#include "host/base/adapter_abi.h"

namespace numsan {

/// Elements, or products of elements, that the op adds up for one of this output's: the inner dimension of a matrix
/// product, the size of what a mean or a loss is taken of. 1 where it adds up none, or the table of operators does not
/// say.
int64_t summed(const OpEvent& event, const TensorView& output) noexcept;

}  // namespace numsan
