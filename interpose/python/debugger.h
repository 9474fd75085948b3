// The Python side of the option `break`: the prompt in the frame of a line, and the exception where nobody is asked.
#pragma once

#include <string>
#include <vector>

#include "host/base/held_call.h"
#include "interpose/python/api/api.h"

namespace numsan {

/// What the script of the debugger asks. Called with the interpreter's lock held. Nothing throws.
struct DebuggerHost {
    /// Lines "STEP MAGNITUDE" of what was written to a storage, oldest first; "none" where nothing finite is known.
    std::string (*history)(const void* storage);
    /// Whether this thread's operators are the debugger's from now on. Returns what was so before.
    bool (*pause)(bool paused);
    /// See BreakPoints::again().
    void (*again)(const std::string& place);
    /// Writes the call that this thread has stopped at to a file, as the option `dump` does. What went wrong, or
    /// nothing.
    std::string (*dump)(const std::string& path);
};

/// One stop, as the debugger shows it.
struct DebuggerStop {
    std::string file;   ///< of the frame to stop in
    int line = 0;       ///< that it runs
    int frame = 0;      ///< frames from the innermost one
    std::string place;  ///< what DebuggerHost::again() is given
    std::string text;   ///< for the terminal
    std::string document;
    bool scaled = false;  ///< not to be stopped at while there is a loss scaler
    /// Tensors that are alive and as the op read or left them, by the address of their implementation. Of the others
    /// `view` has a copy.
    std::vector<const void*> inputs, outputs;
    const HeldCall* held = nullptr;
    const HeldView* view = nullptr;  ///< of `held`
};

/// An exception that came out of the debugger: three references, all null where there was none.
struct DebuggerError {
    void* type = nullptr;
    void* value = nullptr;
    void* traceback = nullptr;
    std::string text;
};

/// One per process, never destroyed. Members take the interpreter's lock, and nothing of numsan's is held meanwhile.
class Debugger {
  public:
    /// Runs the script: from then on the program can import NumericalError from `_numsan`. Null where Python would not
    /// have it. `host` lives as long. `replay`: the program that tries help on what DebuggerHost::dump() wrote.
    static Debugger* start(const PythonApi& api, const DebuggerHost& host, const std::string& replay);

    /// Whether what is typed at the terminal gets to the prompt: the input of a DataLoader's worker is nobody's.
    bool anybody_there() const;
    /// Returns when its user lets the program go on. False in `stopped`: a loss scaler was found.
    DebuggerError stop(const DebuggerStop& stop, bool& stopped) const;
    /// NumericalError, with the finding.
    DebuggerError raise(const DebuggerStop& stop) const;
    void drop(DebuggerError& error) const;

  private:
    Debugger(const PythonApi& api, void* object) : api_(api), object_(object) {}
    DebuggerError call(const char* method, const DebuggerStop& stop, bool* answer) const;

    const PythonApi& api_;
    void* const object_;
};

}  // namespace numsan
