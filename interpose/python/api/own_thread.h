// Python code of ours, on a thread of ours.
#pragma once

#include <functional>

#include "interpose/python/api/api.h"

namespace numsan {

/// Calls `work` with the interpreter's lock on a thread made for it, and waits until it is done: CPython calls handlers
/// of signals between any two bytecodes, but on the main thread only, so what they raise is not lost among our own
/// errors. Nothing that `work` throws gets out. A thread that holds the interpreter's lock gives it up meanwhile.
///
/// The wait ends after a second, or after five once the work has begun: who has the interpreter's lock may be waiting
/// for the calling thread, in an extension that does not let go of it. False then, and when there can be no such
/// thread. So `work` owns, or shares, all that it uses: what has begun may end later. It holds none of our locks.
bool on_own_python_thread(const PythonApi& api, std::function<void()> work);

}  // namespace numsan
