// The hook for operators that training calls most: their kernels on our key take typed arguments, which saves packing
// every argument into an IValue and out again. All others go through the boxed fallback; both say the same of a call.
#pragma once

#include "interpose/torch/hook/registrations.h"

namespace numsan {

/// Registers a kernel on our key for each row of typed_hook.def that this torch has. Throws what torch throws.
void register_typed_hooks(Registrations& made);

}  // namespace numsan
