// at::Tensor -> TensorView. Asks the key set first: wrapper, sparse, functorch and fake tensors are never asked for
// sizes.
#pragma once

#include <ATen/core/Tensor.h>

#include "host/core/adapter_abi.h"
#include "host/core/tensor_view.h"

namespace numsan {

/// Fills `view`. False for tensors whose storage must not be touched (sparse, wrapper subclasses, meta, no storage);
/// for those the view is left alone. For integer tensors the view is filled without kScannable.
bool view_of(const at::Tensor& tensor, uint32_t extra_flags, TensorView& view);

/// Why view_of refused a tensor: a literal, a reason of the report's coverage.skipped.
const char* why_not_viewed(const at::Tensor& tensor);

/// Identity of a live tensor's storage, null when it has none.
const void* storage_of(const void* impl);

/// Bits of TensorKin for a live tensor.
uint32_t kin_of(const void* impl);

}  // namespace numsan
