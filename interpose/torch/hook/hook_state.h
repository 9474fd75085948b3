// Where ops are reported to, and whether the dispatch hook sees them.
#pragma once

#include <atomic>

#include "host/base/adapter_abi.h"

namespace numsan {

inline std::atomic<const CoreApi*> g_core_api{nullptr};
inline std::atomic<bool> g_dispatch_hook{false};

/// The core's table; null once everything is off. Read on the hot path.
inline const CoreApi* core_api() { return g_core_api.load(std::memory_order_relaxed); }
inline void set_core_api(const CoreApi* core) { g_core_api.store(core, std::memory_order_release); }

/// Whether this process's ops are seen by the dispatch hook.
inline bool dispatch_hook_installed() { return g_dispatch_hook.load(std::memory_order_relaxed); }

}  // namespace numsan
