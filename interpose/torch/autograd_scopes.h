// Autograd nodes and user scopes (Optimizer.step, DataLoader, record_function), from the events torch emits for
// nothing.
#pragma once

namespace numsan {

/// Registers the two RecordFunction callbacks. They fire for BACKWARD_FUNCTION and USER_SCOPE only.
void install_autograd_scopes();

}  // namespace numsan
