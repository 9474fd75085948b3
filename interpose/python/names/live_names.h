// Names of live modules, parameters, buffers, gradients and optimizer state, asked of the interpreter.
#pragma once

#include "host/stacks/stack_source.h"
#include "interpose/python/layout/layout.h"

namespace numsan {

/// Asks without letting other threads of Python run meanwhile, for some tens of milliseconds of CPU time at most, about
/// a second of the clock where the machine is busy, and runs no Python code: nothing in the program can see it, and
/// nothing of it is held. A thread that has the interpreter's lock asks itself. Any other waits, at most for a second,
/// for a thread of numsan's that asks for the lock: who has it may be waiting for this one. Empty then, in a build
/// without that lock, and when anything else goes wrong.
///
/// Lines of code that torch.fx wrote are read after that where such code is alive, by Python code on that thread; of a
/// thread that has the lock only at the end of the program, when it gives the lock up meanwhile. `layout`: that of
/// frames, null where it is not known: then local variables have no names. `on_own_thread` is called on that thread
/// first. The caller holds no lock of ours.
LiveNames live_names(const PythonApi& api, const PythonLayout* layout, const TensorReader& reader,
                     void (*on_own_thread)());

}  // namespace numsan
