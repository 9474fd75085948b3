// What the driver does beside its calls: it loads the library that CUDA_INJECTION64_PATH names inside cuInit, and takes
// a script for a process from the environment.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>

#include "tests/fakes/cuda/control.h"
#include "tests/fakes/cuda/internal.h"
#include "tests/fakes/cuda/translated.h"

namespace fake_cuda {
namespace {

/// FAKE_CUDA="version=12000;devices=0;cuMemAlloc=2:1:3;cuMemFree=stall;kernels=/a/library": as set_driver_version,
/// set_devices, fail(name, result, skip, times), stall(name), and use_translated(path).
const bool scripted = [] {
    const char* script = std::getenv("FAKE_CUDA");
    std::istringstream parts(script != nullptr ? script : "");
    std::string part;
    while (std::getline(parts, part, ';')) {
        const size_t equals = part.find('=');
        if (equals == std::string::npos) std::abort();
        const std::string name = part.substr(0, equals);
        if (name == "kernels") {
            use_translated(part.substr(equals + 1));
            continue;
        }
        if (part.substr(equals + 1) == "stall") {
            stall(name.c_str(), true);
            continue;
        }
        int value = 0, skip = 0, times = 1 << 30;
        if (std::sscanf(part.c_str() + equals + 1, "%d:%d:%d", &value, &skip, &times) < 1) std::abort();
        if (name == "version") {
            set_driver_version(value);
        } else if (name == "devices") {
            set_devices(value);
        } else {
            fail(name.c_str(), value, skip, times);
        }
    }
    return true;
}();

std::atomic<int> calls_inside{0};
thread_local bool inside = false;

}  // namespace

void note_call() {
    if (inside) ++calls_inside;
}

void inject() {
    static std::once_flag once;  // other threads' cuInit waits, and one inside of it would for ever
    std::call_once(once, [] {
        const char* path = std::getenv("CUDA_INJECTION64_PATH");
        if (path == nullptr || *path == '\0') return;
        inside = true;
        if (void* library = dlopen(path, RTLD_LAZY)) {
            const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
            if (initialize != nullptr) initialize();
        }
        inside = false;
    });
}

}  // namespace fake_cuda

/// Calls of the driver's that an injected library made inside cuInit, where none is allowed.
extern "C" __attribute__((visibility("default"))) int fake_cuda_calls_inside_injection() {
    return fake_cuda::calls_inside;
}
