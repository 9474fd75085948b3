// Autograd nodes and user scopes (Optimizer.step, DataLoader, record_function), from the events torch emits for
// nothing.
#pragma once

#include "host/base/adapter_abi.h"

namespace numsan {

/// From now on `core` hears of BACKWARD_FUNCTION and USER_SCOPE: see autograd_calls.h, and where that is not possible
/// through a record function's callbacks for all of the process.
void install_autograd_scopes(const CoreApi& core);

}  // namespace numsan
