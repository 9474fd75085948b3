// Asks the driver that the process has, if it has one, about an address.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include "cuda/cuda_device_scanner.h"

namespace numsan {

bool is_cuda_memory(const void* data) noexcept {
    void* library = data != nullptr ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : nullptr;
    if (library == nullptr) return false;
    const auto ask =
        reinterpret_cast<PFN_cuPointerGetAttribute_v4000>(dlsym(library, "cuPointerGetAttribute"));
    unsigned int kind = 0;
    const bool known = ask != nullptr && ask(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                             reinterpret_cast<CUdeviceptr>(data)) == CUDA_SUCCESS;
    dlclose(library);  // the process's own reference stays
    return known && kind == CU_MEMORYTYPE_DEVICE;
}

}  // namespace numsan
