// What the core calls to keep what is held.
#pragma once

#include "host/base/adapter_abi.h"

namespace numsan {

/// Once, before the first op. At most CoreApi::held_bytes of a call are copied.
HoldApi hold_api(const CoreApi& core) noexcept;

}  // namespace numsan
