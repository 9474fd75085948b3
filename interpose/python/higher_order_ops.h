// Lets torch's higher-order operators (cond, while_loop, flex_attention) pass the adapter's dispatch key by.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// torch/_ops.py computes the dispatch keys of a higher-order operator in Python, from a thread's set that has the
/// adapter's key in it, and raises NotImplementedError where an operator has no rule for a key. From now on it is told
/// of all keys but that one. A finder on sys.meta_path, which finds nothing, waits for torch._ops and is gone with the
/// import after it: before any module that defines such an operator can run, on whatever thread.
/// Takes the interpreter's lock. False when Python would not have it.
bool pass_higher_order_ops(const PythonApi& api);

}  // namespace numsan
