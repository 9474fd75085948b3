// The functions that a source file of the program has.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// A new reference to a Python function functions_in(file): a list of the functions of imported modules whose
/// `__file__` that is, those of their classes among them. Null without memory; the caller holds the interpreter's lock.
void* functions_in_function(const PythonApi& api);

}  // namespace numsan
