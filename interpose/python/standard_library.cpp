#include "interpose/python/standard_library.h"

#include "interpose/python/names/variables.h"

namespace numsan {

/// The module `os` is imported as Python starts, from there.
std::string standard_library(const PythonApi& api) {
    const PythonLock lock(api);
    void* const file = global_of(api, "os", "__file__");
    const std::string path = file != nullptr ? text_of(api, file) : "";
    const size_t end = path.rfind('/');
    return end != std::string::npos && path[0] == '/' ? path.substr(0, end) : "";
}

std::string interpreter_path(const PythonApi& api) {
    const PythonLock lock(api);
    void* const path = global_of(api, "sys", "executable");
    return path != nullptr ? text_of(api, path) : "";
}

}  // namespace numsan
