// Copies of tensors that are made beside the program: no operator, no autograd, no version, no random number.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>

#include "host/base/device_queue.h"

namespace numsan {

/// torch's name of an element type ("float32"); null for one without a row in held_types.def.
const char* type_name(c10::ScalarType type);
/// As safetensors has it; null: see held_types.def.
const char* type_format(c10::ScalarType type);

/// CoreApi::read_device; null: devices are not read. Once, before the first op.
void read_devices_by(bool (*read)(const DeviceQueue& queue, const void* from, int64_t bytes, void* to)) noexcept;

/// Whether copy_of() can read it: dense memory of the host or of a device. Else a literal says why not.
const char* why_not_copied(const at::Tensor& tensor);

/// Of a defined tensor that has a storage or not: its elements' bytes in a row.
int64_t bytes_of(const at::Tensor& tensor);

/// Its logical values, contiguous, in the host's memory, where why_not_copied() is null. Undefined where a device
/// cannot be read now: a graph is being captured. Throws where there is no memory.
at::Tensor copy_of(const at::Tensor& tensor);

}  // namespace numsan
