// Where the interpreter of this process is, and where it has the modules that come with it.
#pragma once

#include <string>

#include "interpose/python/api/api.h"

namespace numsan {

/// The folder of the standard library as the interpreter names it in its frames; empty where it does not say. Runs no
/// Python code. Takes the interpreter's lock, which the caller may hold already.
std::string standard_library(const PythonApi& api);

/// The path by which this interpreter is started again, that of a virtual environment where it has one; empty where it
/// does not know. As above.
std::string interpreter_path(const PythonApi& api);

}  // namespace numsan
