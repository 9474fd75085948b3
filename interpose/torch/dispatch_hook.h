// Sees every operator: a boxed fallback on DispatchKey::Fake, below autograd and above the backends.
#pragma once

#include "host/core/adapter_abi.h"

namespace numsan {

/// The core's table; null once everything is off. Read on the hot path.
const CoreApi* core_api();
void set_core_api(const CoreApi* core);

/// Puts the key into, or out of, the calling thread's included set.
void show_ops_of_this_thread(bool on);

/// Registers the fallback. False, with a reason, when another library holds the key.
bool install_dispatch_hook(const char** why);

}  // namespace numsan
