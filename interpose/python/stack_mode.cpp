// How Python frames are read in this process, as `numsan doctor` asks it of the Python that it is given, through
// ctypes.
#include <string>

#include "interpose/python/frames.h"

/// "raw|", or "api|" or "none|" and why. Lives as long as the process. Takes the interpreter's lock. [MT]
extern "C" __attribute__((visibility("default"))) const char* numsan_python_stacks() noexcept {
    try {
        static const std::string* answer = [] {
            const numsan::PythonStacks stacks;
            const char* const modes[] = {"raw", "api", "none"};
            return new std::string(modes[int(stacks.mode())] + ("|" + stacks.why()));
        }();
        return answer->c_str();
    } catch (...) {
        return "none|out of memory";
    }
}
