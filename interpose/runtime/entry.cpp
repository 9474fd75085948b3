// What libnumsan_core.so shows (exports.map), but for what doctor asks of Python. Keep every exception on this side.
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

#include "host/log/log.h"
#include "interpose/runtime/attach.h"
#include "interpose/runtime/attach_cuda.h"
#include "interpose/runtime/stub_abi.h"

namespace {

int turned_off(const char* reason) noexcept {
    try {
        numsan::stderr_log().line(numsan::Level::Always, std::string("off: ") + reason);
    } catch (...) {
        // No memory is left to say it with; the program runs on.
    }
    return 1;
}

int enter(const numsan_stub_api* stub, bool (*begin)(const numsan_stub_api&)) noexcept {
    if (!stub || stub->abi != NUMSAN_STUB_ABI || stub->size < sizeof(numsan_stub_api))
        return turned_off("libnumsan.so and libnumsan_core.so are of different versions");
    if (getauxval(AT_SECURE) != 0) return 1;  // it has rights that its user, who set the environment, has not
    try {
        return begin(*stub) ? 0 : 1;
    } catch (const std::exception& error) {
        return turned_off(error.what());
    } catch (...) {
        return turned_off("unknown failure while starting");
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int numsan_core_attach(const numsan_stub_api* stub) noexcept {
    return enter(stub, numsan::attach);
}

extern "C" __attribute__((visibility("default"))) int numsan_core_cuda(const numsan_stub_api* stub) noexcept {
    return enter(stub, numsan::cuda_started);
}

/// adapter_origin(), for `numsan doctor`, which asks through ctypes.
extern "C" __attribute__((visibility("default"))) const char* numsan_adapter_origin() noexcept {
    return numsan::adapter_origin();
}

// What python/numsan/_library.py calls, through ctypes, without the interpreter's lock.

extern "C" __attribute__((visibility("default"))) void numsan_scope(const char* name, int begins) noexcept {
    if (name != nullptr) numsan::Front::scope(name, begins != 0);
}

extern "C" __attribute__((visibility("default"))) void numsan_decide() noexcept { numsan::Front::decide(); }

/// Copies the report, without a zero behind it, if it has at most `size` bytes. Returns how many it has; -1 where there
/// is none: nothing is watched.
extern "C" __attribute__((visibility("default"))) int64_t numsan_report(char* into, int64_t size) noexcept {
    try {
        std::string text;
        if (!numsan::Front::report(text)) return -1;
        const auto bytes = static_cast<int64_t>(text.size());
        if (into != nullptr && bytes <= size) std::copy(text.begin(), text.end(), into);
        return bytes;
    } catch (...) {
        return -1;  // out of memory
    }
}

static_assert(noexcept(numsan_core_attach(nullptr)) && noexcept(numsan_core_cuda(nullptr)));
