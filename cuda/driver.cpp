// dlopen, then cuGetProcAddress for each call, with the version whose signature the table has.
#include "cuda/driver.h"

#include <dlfcn.h>

#include <cstdio>

namespace numsan::gpu {

bool load_driver(const char* library, Driver& driver, char* reason, size_t reason_size) noexcept {
    void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) handle = dlopen(library, RTLD_NOW);
    if (handle == nullptr) {
        std::snprintf(reason, reason_size, "the CUDA driver (%s) could not be loaded", library);
        return false;
    }
    const auto version_of = reinterpret_cast<PFN_cuDriverGetVersion_v2020>(dlsym(handle, "cuDriverGetVersion"));
    int version = 0;
    if (version_of == nullptr || version_of(&version) != CUDA_SUCCESS) {
        std::snprintf(reason, reason_size, "%s does not report its version", library);
        return false;
    }
    if (version < kOldestDriver) {
        std::snprintf(reason, reason_size, "the driver supports CUDA %d.%d, numsan needs %d.%d or later",
                      version / 1000, version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10);
        return false;
    }
    driver.version = version;
    const auto find = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(handle, "cuGetProcAddress_v2"));
    if (find == nullptr) {
        std::snprintf(reason, reason_size, "%s lacks cuGetProcAddress_v2", library);
        return false;
    }
    const auto get = [&](const char* name, int since) -> void* {
        void* call = nullptr;
        CUdriverProcAddressQueryResult found;
        if (find(name, &call, since, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) == CUDA_SUCCESS && call != nullptr)
            return call;
        std::snprintf(reason, reason_size, "the driver lacks %s of CUDA %d.%d", name, since / 1000, since % 1000 / 10);
        return nullptr;
    };
#define NUMSAN_DRIVER_CALL(field, name, version)                                   \
    driver.field = reinterpret_cast<PFN_##name##_v##version>(get(#name, version)); \
    if (driver.field == nullptr) return false;
#define NUMSAN_OPTIONAL_DRIVER_CALL(field, name, version) \
    driver.field = reinterpret_cast<PFN_##name##_v##version>(get(#name, version));
#include "cuda/driver_calls.def"
#undef NUMSAN_OPTIONAL_DRIVER_CALL
#undef NUMSAN_DRIVER_CALL
    reason[0] = '\0';  // of an optional one
    return true;
}

void name_error(const Driver& driver, CUresult result, char* text, size_t size) noexcept {
    const char* name = nullptr;
    if (driver.error_name(result, &name) == CUDA_SUCCESS && name != nullptr) {
        std::snprintf(text, size, "%s", name);
    } else {
        std::snprintf(text, size, "CUDA error %d", static_cast<int>(result));
    }
}

ContextScope::ContextScope(const Driver& driver, CUcontext context) noexcept : driver_(driver) {
    CUcontext current = nullptr;
    result_ = driver.context_current(&current);
    if (result_ != CUDA_SUCCESS || current == context) return;
    result_ = driver.context_push(context);
    pushed_ = result_ == CUDA_SUCCESS;
}

ContextScope::~ContextScope() {
    CUcontext ignored;
    if (pushed_) driver_.context_pop(&ignored);
}

}  // namespace numsan::gpu
