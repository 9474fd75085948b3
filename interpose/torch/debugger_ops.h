// What the debugger's user is given by torch itself: tensors by address, and a thread as it is outside every operator.
#pragma once

namespace numsan {

/// AdapterApi::outside_ops: dispatch keys as they are by default, so that autograd records and nothing is in autocast
/// or inside a transform; whether gradients are on, and inference mode, stay as they are.
void outside_ops(void (*run)(void* argument), void* argument);

/// Defines torch.ops.numsan.tensors_at(addresses) and torch.ops.numsan.kept_at(call, tensor): tensors that are alive,
/// by the address of their implementation, and a copy of a tensor of a HeldCall. May throw.
void define_debugger_ops();

}  // namespace numsan
