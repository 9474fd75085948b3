// What the core calls to keep what is held.
#pragma once

#include <cstdint>

#include "host/base/held_call.h"

namespace numsan {

/// Once, before the first op. At most `most_bytes` of a call are copied.
HoldApi hold_api(int64_t most_bytes) noexcept;

}  // namespace numsan
