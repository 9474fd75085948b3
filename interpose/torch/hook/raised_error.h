// Exceptions of Python's that leave an operator: the debugger's user quit, or `break` raises what was found.
#pragma once

#include "host/base/adapter_abi.h"

namespace numsan {

/// Throws what the core has for this thread, if anything: to be called from a kernel, behind everything that catches
/// exceptions of our own. torch hands it to Python as what it is, through autograd's engine too.
void throw_error_of(const CoreApi& core);

}  // namespace numsan
