// Elements of integer tensors in the host's memory.
#pragma once

#include <cstdint>
#include <optional>

#include "host/base/health.h"
#include "host/base/tensor_view.h"

namespace numsan {

/// The elements may be read.
inline bool holds_integers(const TensorView& t) {
    return t.integer != IntegerType::None && t.device == Device::Cpu && (t.data != nullptr || t.numel == 0);
}

/// The element `offset` elements from the first.
long double integer_at(const TensorView& t, int64_t offset);

/// The facts of every element, as Scanner::health() has them of floats. None of what is no integer, or of very many
/// elements.
std::optional<Health> integer_health(const TensorView& t);

}  // namespace numsan
