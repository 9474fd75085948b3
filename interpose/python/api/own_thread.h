// Python code of ours, on a thread of ours.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// Calls `work(argument)` with the interpreter's lock on a thread made for it, and waits without the lock until it is
/// done: CPython calls handlers of signals between any two bytecodes, but on the main thread only, so what they raise
/// is not lost among our own errors. Nothing that `work` throws gets out. False when there can be no such thread. The
/// calling thread may hold the lock; it holds none of ours.
bool on_own_python_thread(const PythonApi& api, void (*work)(void*), void* argument);

}  // namespace numsan
