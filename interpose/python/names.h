// Names of live modules, parameters, buffers, gradients and optimizer state, asked of the interpreter.
#pragma once

#include "host/stacks/stack_source.h"
#include "interpose/python/api.h"

namespace numsan {

/// Runs live_names.inc under the interpreter's lock. Changes nothing in the program: no import of anything new, no
/// random numbers, no operator, the error indicator as it was. Empty when anything goes wrong. The caller keeps our own
/// hooks off on this thread and holds no lock of ours; the program's trace function, if it has one, sees the code run.
/// An exception that a signal handler of the program raised meanwhile (an interrupt, an exit) is raised anew in the
/// program. `storage_of`: see StackSource::names.
LiveNames live_names(const PythonApi& api, StackSource::StorageOf storage_of);

}  // namespace numsan
