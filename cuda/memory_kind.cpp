// Asks the driver that the process has, if it has one, about an address or a stream.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <atomic>

#include "cuda/cuda_device_scanner.h"

namespace numsan {
namespace {

/// A call of the process's driver; null while it has none. Found once: a driver is never unloaded.
template <class Call>
Call find_call(const char* name, std::atomic<Call>& found) noexcept {
    if (Call call = found.load(std::memory_order_relaxed)) return call;
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return nullptr;
    const auto call = reinterpret_cast<Call>(dlsym(library, name));
    dlclose(library);  // the process's own reference stays
    found.store(call, std::memory_order_relaxed);
    return call;
}

bool is_memory(const void* data, unsigned int wanted) noexcept {
    static std::atomic<PFN_cuPointerGetAttribute_v4000> found{nullptr};
    const auto ask = data != nullptr ? find_call("cuPointerGetAttribute", found) : nullptr;
    unsigned int kind = 0;
    return ask != nullptr &&
           ask(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(data)) == CUDA_SUCCESS &&
           kind == wanted;
}

}  // namespace

bool is_cuda_memory(const void* data) noexcept { return is_memory(data, CU_MEMORYTYPE_DEVICE); }
bool is_pinned_memory(const void* data) noexcept { return is_memory(data, CU_MEMORYTYPE_HOST); }

int16_t device_of_thread() noexcept {
    static std::atomic<PFN_cuCtxGetDevice_v2000> found{nullptr};
    const auto ask = find_call("cuCtxGetDevice", found);
    CUdevice device = -1;
    return ask != nullptr && ask(&device) == CUDA_SUCCESS ? static_cast<int16_t>(device) : int16_t(-1);
}

bool is_captured(void* stream) noexcept {
    static std::atomic<PFN_cuStreamIsCapturing_v10000> found{nullptr};
    const auto ask = find_call("cuStreamIsCapturing", found);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (ask == nullptr) return false;
    return ask(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace numsan
