// Names of live modules, parameters, buffers, gradients and optimizer state, asked of the interpreter.
#pragma once

#include "host/stacks/stack_source.h"
#include "interpose/python/layout.h"

namespace numsan {

/// Runs live_names.inc in the interpreter, on a thread of its own: CPython calls handlers of signals between any two
/// bytecodes, but on the main thread only, so none can be cut short or have what it raises lost among the exceptions of
/// properties that are asked here. Changes nothing in the program: no import of anything new, no random numbers, no
/// operator, the error indicator as it was. Collections of garbage are off meanwhile: finalizers of the program's would
/// run here. Empty when anything goes wrong. Waits without the interpreter's lock; the
/// caller holds no lock of ours. `layout`: that of frames, null where it is not known: then local variables of the
/// script have no names, up to 3.12.
LiveNames live_names(const PythonApi& api, const PythonLayout* layout, const TensorReader& reader,
                     void (*on_own_thread)());

}  // namespace numsan
