// A call while Python still works, at its end: names can be looked up for the last time.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// Registers `last` with Python's own atexit module, so that it runs before the interpreter is taken down; `raised`: an
/// exception that nothing caught ends the program. Takes the interpreter's lock. False when Python would not have it.
bool call_before_python_ends(const PythonApi& api, void (*last)(bool raised));

/// Has the main thread raise SystemExit with this status as soon as it runs Python code again. Needs no lock of the
/// interpreter's. False when it cannot be asked to. Once in a process. [MT]
bool exit_python(const PythonApi& api, int status);

}  // namespace numsan
