// What the ops that made autograd's nodes were called with, as long as it is alive: referred to weakly, in rings of
// fixed size. Only where CoreApi::held_bytes asks for it.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>

#include "host/base/held_call.h"
#include "interpose/torch/describe/op_registry.h"

namespace numsan {

/// At most this many bytes of a call are copied later; once, before the first op.
void hold_forward_calls(int64_t most_bytes) noexcept;

/// After an op with gradients on; `sequence` is the number of the thread's last node. The first op that shows a number
/// made its node. No tensor is kept alive. [MT] Nothing throws; where another thread reads the ring, or there is no
/// memory, the call is not noted.
void note_forward_call(const Operator& op, uint64_t thread, uint64_t sequence, c10::ArrayRef<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results) noexcept;

/// HoldApi::keep_forward.
HeldCall* keep_forward(uint64_t thread, uint64_t sequence);

}  // namespace numsan
