// Sees every operator: a boxed fallback on DispatchKey::Fake, below autograd and above the backends.
#pragma once

namespace numsan {

/// Puts the key into the calling thread's included set. Does nothing where the hook is not installed.
void show_ops_of_this_thread();

/// Registers the fallback, and unless `boxed` kernels with typed arguments for the operators that training calls most.
/// False when this torch lacks the key or another library holds it.
bool install_dispatch_hook(bool boxed);

}  // namespace numsan
