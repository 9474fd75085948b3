// Copies of tensors that are made beside the program: no operator, no autograd, no version, no random number.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>

namespace numsan {

/// torch's name of an element type ("float32"); null for one without a row in held_types.def.
const char* type_name(c10::ScalarType type);
/// As safetensors has it; null: see held_types.def.
const char* type_format(c10::ScalarType type);

/// Whether copy_of() can read it: dense memory of the host. Else a literal says why not.
const char* why_not_copied(const at::Tensor& tensor);

/// Of a defined tensor that has a storage or not: its elements' bytes in a row.
int64_t bytes_of(const at::Tensor& tensor);

/// Its logical values, contiguous, in memory of its own, where why_not_copied() is null. Throws where there is none.
at::Tensor copy_of(const at::Tensor& tensor);

}  // namespace numsan
