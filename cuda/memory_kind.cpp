// Asks the driver that the process has, if it has one, about an address.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <atomic>

#include "cuda/cuda_device_scanner.h"

namespace numsan {
namespace {

using Ask = PFN_cuPointerGetAttribute_v4000;

/// Null while the process has no driver. Found once: a driver is never unloaded.
Ask find_ask() noexcept {
    static std::atomic<Ask> found{nullptr};
    if (Ask ask = found.load(std::memory_order_relaxed)) return ask;
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return nullptr;
    const auto ask = reinterpret_cast<Ask>(dlsym(library, "cuPointerGetAttribute"));
    dlclose(library);  // the process's own reference stays
    found.store(ask, std::memory_order_relaxed);
    return ask;
}

bool is_memory(const void* data, unsigned int wanted) noexcept {
    const Ask ask = data != nullptr ? find_ask() : nullptr;
    unsigned int kind = 0;
    return ask != nullptr &&
           ask(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(data)) == CUDA_SUCCESS &&
           kind == wanted;
}

}  // namespace

bool is_cuda_memory(const void* data) noexcept { return is_memory(data, CU_MEMORYTYPE_DEVICE); }
bool is_pinned_memory(const void* data) noexcept { return is_memory(data, CU_MEMORYTYPE_HOST); }

}  // namespace numsan
