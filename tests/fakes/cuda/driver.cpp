// Start-up, devices, contexts, errors, entry points, and the scripts of tests.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/fakes/cuda/control.h"
#include "tests/fakes/cuda/internal.h"

namespace fake_cuda {

Settings settings;

namespace {

constexpr int kMaxDevices = 8;

struct World {
    std::mutex mutex;
    std::map<std::string, Call> calls;
    std::vector<CUcontext> contexts;  // all that ever were
    CUcontext primary[kMaxDevices] = {};
    unsigned long long next_id = 1;
};
World& world() {
    static World* w = new World;
    return *w;
}

thread_local std::vector<CUcontext> stack;

CUcontext make_context(World& w, int device, bool primary) {
    auto* context = new CUctx_st(device, w.next_id++, primary);
    w.contexts.push_back(context);
    return context;
}

void destroy(CUcontext context) {
    if (context->destroyed.exchange(true)) return;
    drain(context);
    free_memory(context);
}

CUresult check_device(CUdevice device) {
    if (!settings.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    return device >= 0 && device < settings.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

struct ErrorText {
    CUresult result;
    const char* name;
    const char* text;
};
constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

void set_stalled(Call& c, bool stalled) {
    c.stalled = stalled;
    c.stalled.notify_all();
}

const ErrorText* text_of(CUresult result) {
    const auto* found =
        std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorText& e) { return e.result == result; });
    return found != std::end(kErrors) ? found : nullptr;
}

}  // namespace

CUresult Call::enter() {
    note_call();
    ++count;
    if (in_destructor()) return CUDA_ERROR_NOT_PERMITTED;
    stalled.wait(true);
    if (times.load(std::memory_order_relaxed) <= 0) return CUDA_SUCCESS;
    if (skip.fetch_sub(1) > 0) return CUDA_SUCCESS;
    return times.fetch_sub(1) > 0 ? static_cast<CUresult>(result.load()) : CUDA_SUCCESS;
}

Call& call(const std::string& name) {
    const std::lock_guard lock(world().mutex);
    return world().calls[name];
}

CUresult current(CUcontext& context) {
    if (!settings.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (stack.empty() || stack.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    context = stack.back();
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return static_cast<CUresult>(context->sticky.load());
}

void reset() {
    World& w = world();
    hold(false);
    for (auto& [name, c] : w.calls) set_stalled(c, false);
    const std::vector<CUcontext> all = w.contexts;
    for (CUcontext context : all) destroy(context);
    std::fill(std::begin(w.primary), std::end(w.primary), nullptr);
    stack.clear();
    for (auto& [name, c] : w.calls) {
        c.count = 0;
        c.result = c.skip = c.times = 0;
        c.hidden = false;
    }
    settings.devices = 1;
    settings.version = 13000;
    settings.threads = 1;
    settings.shuffle = 0;
    settings.skip_kernels = false;
}

void set_devices(int count) { settings.devices = std::min(count, kMaxDevices); }
void set_driver_version(int version) { settings.version = version; }
void skip_kernels(bool skip) { settings.skip_kernels = skip; }
void set_grid(int threads, uint32_t shuffle) {
    settings.threads = threads;
    settings.shuffle = shuffle;
}

void fail(const char* name, int result, int skip, int times) {
    Call& c = call(name);
    c.result = result;
    c.skip = skip;
    c.times = times;
}

void stall(const char* name, bool stalled) { set_stalled(call(name), stalled); }
void hide(const char* name) { call(name).hidden = true; }
void make_sticky(void* context, int result) { static_cast<CUcontext>(context)->sticky = result; }

uint64_t calls(const char* name) {
    if (name != nullptr) return call(name).count;
    const std::lock_guard lock(world().mutex);
    uint64_t all = 0;
    for (const auto& [key, c] : world().calls) all += c.count;
    return all;
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

CUresult CUDAAPI cuInit(unsigned int flags) {
    FAKE_ENTER(cuInit);
    if (settings.devices == 0) return CUDA_ERROR_NO_DEVICE;
    inject();
    settings.initialised = true;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
    FAKE_ENTER(cuDriverGetVersion);
    *version = settings.version;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
    FAKE_ENTER(cuDeviceGetCount);
    if (!settings.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *count = settings.devices;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
    FAKE_ENTER(cuDeviceGet);
    FAKE_TRY(check_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
    FAKE_ENTER(cuDeviceGetName);
    FAKE_TRY(check_device(device));
    std::snprintf(name, static_cast<size_t>(length), "numsan fake device %d", device);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    FAKE_ENTER(cuDeviceTotalMem);
    FAKE_TRY(check_device(device));
    *bytes = kDeviceBytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    FAKE_ENTER(cuDeviceGetAttribute);
    FAKE_TRY(check_device(device));
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; return CUDA_SUCCESS;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; return CUDA_SUCCESS;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; return CUDA_SUCCESS;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 256 << 10; return CUDA_SUCCESS;
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; return CUDA_SUCCESS;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    FAKE_ENTER(cuDevicePrimaryCtxRetain);
    FAKE_TRY(check_device(device));
    const std::lock_guard lock(world().mutex);
    CUcontext& primary = world().primary[device];
    if (primary == nullptr || primary->destroyed) primary = make_context(world(), device, true);
    ++primary->retained;
    *context = primary;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    FAKE_ENTER(cuDevicePrimaryCtxRelease);
    FAKE_TRY(check_device(device));
    CUcontext primary;
    {
        const std::lock_guard lock(world().mutex);
        primary = world().primary[device];
        if (primary == nullptr || primary->destroyed) return CUDA_ERROR_INVALID_CONTEXT;
        if (--primary->retained > 0) return CUDA_SUCCESS;
    }
    destroy(primary);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
    FAKE_ENTER(cuDevicePrimaryCtxReset);
    FAKE_TRY(check_device(device));
    CUcontext primary;
    {
        const std::lock_guard lock(world().mutex);
        primary = world().primary[device];
    }
    if (primary != nullptr) destroy(primary);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate(CUcontext* context, CUctxCreateParams* params, unsigned int, CUdevice device) {
    FAKE_ENTER(cuCtxCreate);
    FAKE_TRY(check_device(device));
    if (params != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const std::lock_guard lock(world().mutex);
    stack.push_back(*context = make_context(world(), device, false));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
    FAKE_ENTER(cuCtxDestroy);
    if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    destroy(context);
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
    FAKE_ENTER(cuCtxGetCurrent);
    if (!settings.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *context = stack.empty() ? nullptr : stack.back();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    FAKE_ENTER(cuCtxSetCurrent);
    if (!settings.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
    FAKE_ENTER(cuCtxPushCurrent);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    stack.push_back(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
    FAKE_ENTER(cuCtxPopCurrent);
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
}

#undef cuCtxGetDevice
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
    FAKE_ENTER(cuCtxGetDevice);
    CUcontext context;
    FAKE_TRY(current(context));
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
    FAKE_ENTER(cuCtxGetId);
    if (context == nullptr) FAKE_TRY(current(context));
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult result, const char** name) {
    const ErrorText* text = text_of(result);
    *name = text != nullptr ? text->name : nullptr;
    return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult result, const char** string) {
    const ErrorText* text = text_of(result);
    *string = text != nullptr ? text->text : nullptr;
    return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Entry points by name and CUDA version: of those that the fake has, the newest that is not newer than the version.
CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
    FAKE_ENTER(cuGetProcAddress);
    *function = nullptr;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return CUDA_ERROR_NOT_SUPPORTED;
    static void* const self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    static const struct {
        const char* name;
        const char* entry;
        int since;
    } kEntries[] = {
#define FAKE_CUDA_CALL(name, entry, since) {#name, #entry, since},
#include "tests/fakes/cuda/calls.def"
#undef FAKE_CUDA_CALL
    };
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (const auto& entry : kEntries) {
        if (std::strcmp(entry.name, symbol) != 0 || call(symbol).hidden) continue;
        if (version < entry.since || settings.version < entry.since) {
            if (*function == nullptr) found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
            continue;
        }
        *function = dlsym(self, entry.entry);
        found = CU_GET_PROC_ADDRESS_SUCCESS;
    }
    if (status != nullptr) *status = found;
    return *function != nullptr || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
