// Which kernels operators launch on a device, with cupti=on.
#pragma once

#include "host/base/adapter_abi.h"
#include "host/session/session_facts.h"

namespace numsan {

/// Adds what knows of launches to the facts of a session. Before the session is made. Throws std::bad_alloc.
void add_op_kernels(SessionFacts& facts);

/// From now on what an op on a device launched is in its event when `core`, which the adapter calls, gets it. Once,
/// before the first op.
void watch_op_kernels(CoreApi& core) noexcept;

}  // namespace numsan
