// What libnumsan_core.so shows (exports.map), but for what doctor asks of Python. Keep every exception on this side.
#include <sys/auxv.h>

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

static_assert(noexcept(numsan_core_attach(nullptr)) && noexcept(numsan_core_cuda(nullptr)));
