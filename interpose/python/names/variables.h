// The variables of the script and of all running functions.
#pragma once

#include <string>
#include <vector>

#include "interpose/python/layout/layout.h"

namespace numsan {

/// `value` is borrowed: it lives as long as the interpreter's lock is held without a break.
struct Variable {
    std::string name;
    void* value = nullptr;
};
using Scope = std::vector<Variable>;

struct Variables {
    std::vector<Scope>
        script;  ///< globals of __main__, then locals of its running functions, innermost first, then `self`s
    std::vector<void*> elsewhere;  ///< values of the locals of all other running functions, borrowed
};

/// Of all threads. The caller holds the interpreter's lock. `layout`: that of frames, null where it is not known; then
/// there are globals only. Locals are read from their slots: `frame.f_locals` would do up to 3.12 only what a debugger
/// may. It fills a dictionary that belongs to the frame, and after each call of a trace or profile function the frame's
/// variables are set to what that dictionary holds.
Variables live_variables(const PythonApi& api, const PythonLayout* layout);

/// The text of a str, with blanks for line ends and without what UTF-8 cannot say. Empty for anything else.
std::string text_of(const PythonApi& api, void* str);

/// The module of that name where it was imported, borrowed; null where it was not.
void* imported(const PythonApi& api, const char* name);

/// A global of an imported module, borrowed; null where there is none. Runs no Python.
void* global_of(const PythonApi& api, const char* module, const char* name);

}  // namespace numsan
