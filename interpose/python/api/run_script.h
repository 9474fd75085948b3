// Runs Python code of numsan's own. The code lies in scripts/*.py and is embedded when numsan is built.
#pragma once

#include "interpose/python/api/api.h"
#include "interpose/python/api/reference.h"

namespace numsan {

/// With the interpreter's lock held, in `globals`, a dict. False: Python's error indicator is set.
inline bool run_script(const PythonApi& api, const char* code, void* globals) {
    constexpr int kFileInput = 257;  // Py_file_input
    const Reference compiled(api, api.Py_CompileString(code, "<numsan>", kFileInput));
    if (compiled.get() == nullptr) return false;
    const Reference done(api, api.PyEval_EvalCode(compiled.get(), globals, globals));
    return done.get() != nullptr;
}

}  // namespace numsan
