// The process group that a collective is called on.
#pragma once

#include <ATen/core/ivalue.h>

#include "host/base/adapter_abi.h"

namespace numsan {

/// `group` is an argument of the class ProcessGroup. Neither takes the interpreter's lock nor talks to other processes.
/// Null where it cannot be said: torch was built without it, or there are more groups than are kept. The result lives
/// for ever. [MT] Takes no lock.
const Communicator* communicator_of(const c10::IValue& group) noexcept;

}  // namespace numsan
