// The text of code that lies in no file: a cell of a notebook, `python -c`, a module in an archive, code from stdin.
#pragma once

#include <vector>

#include "host/stacks/stack_source.h"
#include "interpose/python/api/api.h"

namespace numsan {

/// Asks Python about those of the lines whose files are not there, at most a few dozen; without one nobody is asked.
/// Python code runs for it, on a thread of numsan's, for which a caller that has the interpreter's lock cannot give it
/// up in the middle of an operator: nothing is found then, nor in a build without that lock. `on_own_thread` is called
/// on that thread first. The caller holds no lock of ours.
LiveNames::Sources kept_sources(const PythonApi& api, std::vector<SourceFrame> frames, void (*on_own_thread)());

/// As the program starts, with the interpreter's lock free or held: keeps the code of a main module that lies in no
/// file (`python -c`, stdin), which is gone when the last findings are made. It is kept alive.
void remember_main_code(const PythonApi& api);

}  // namespace numsan
