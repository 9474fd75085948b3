// Which kernels operators launch on a device, with cupti=on.
#pragma once

#include "host/base/adapter_abi.h"
#include "host/session/session_facts.h"

namespace numsan {

/// Adds what knows of launches to the facts of a session. Before the session is made. Throws std::bad_alloc.
void add_op_kernels(SessionFacts& facts);

/// From now on the beginning of each op is noted, before what `core`, which the adapter calls, says of it so far. Once,
/// before the first op.
void watch_op_kernels(CoreApi& core) noexcept;

/// Whether that was done.
bool watches_op_kernels() noexcept;

/// What this thread launched since the op that ends now began. Once for each op. [MT]
LaunchSpan launched_by_op() noexcept;

}  // namespace numsan
