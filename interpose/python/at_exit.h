// A call while Python still works, at its end: names can be looked up for the last time.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// Registers `last` with Python's own atexit module, so that it runs before the interpreter is taken down; `raised`: an
/// exception that nothing caught ends the program. Takes the interpreter's lock. False when Python would not have it.
bool call_before_python_ends(const PythonApi& api, void (*last)(bool raised));

}  // namespace numsan
