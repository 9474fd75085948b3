// Sees every operator: a boxed fallback on DispatchKey::Fake, below autograd and above the backends.
#pragma once

#include <atomic>

#include "host/base/adapter_abi.h"

namespace numsan {

inline std::atomic<const CoreApi*> g_core_api{nullptr};

/// The core's table; null once everything is off. Read on the hot path.
inline const CoreApi* core_api() { return g_core_api.load(std::memory_order_relaxed); }
void set_core_api(const CoreApi* core);

/// Puts the key into the calling thread's included set. Does nothing where the hook is not installed.
void show_ops_of_this_thread();

/// Whether this process's ops are seen by it.
bool dispatch_hook_installed();

/// Registers the fallback. False when this torch lacks the key or another library holds it.
bool install_dispatch_hook();

}  // namespace numsan
