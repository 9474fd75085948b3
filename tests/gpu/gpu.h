// The driver as tests on a real GPU use it: found at run time, so that the tests start where there is none and say so.
// With build/fakes on LD_LIBRARY_PATH it is the fake one, which shows that the tests themselves are right.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <string>

namespace numsan::gpu {

class Gpu {
  public:
    template <class Call>
    static Call symbol(const char* name) {
        static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        return library == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(library, name));
    }

#define GPU_CALL(field, name, exported) decltype(&::name) field = symbol<decltype(field)>(#exported);
#include "tests/gpu/gpu_calls.def"
#undef GPU_CALL

    CUdevice device = 0;
    CUcontext context = nullptr;
    CUstream stream = nullptr;

    /// Empty, or why there is no GPU to test on.
    std::string open(int ordinal = 0) {
        if (init == nullptr) return "no CUDA driver here (libcuda.so.1)";
#define GPU_CALL(field, name, exported) \
    if (field == nullptr) return "the CUDA driver lacks " #exported;
#include "tests/gpu/gpu_calls.def"
#undef GPU_CALL
        CUresult result = init(0);
        if (result == CUDA_SUCCESS) result = device_get(&device, ordinal);
        if (result == CUDA_SUCCESS) result = retain(&context, device);
        if (result == CUDA_SUCCESS) result = set_current(context);
        if (result == CUDA_SUCCESS) result = stream_create(&stream, CU_STREAM_NON_BLOCKING);
        return result == CUDA_SUCCESS ? "" : "the CUDA driver has no usable device: " + text_of(result);
    }

    /// "CUDA_ERROR_OUT_OF_MEMORY", or "CUDA error 1234" when the driver has no name for it.
    std::string text_of(CUresult result) const {
        const char* text = nullptr;
        if (error_name(result, &text) == CUDA_SUCCESS && text != nullptr) return text;
        return "CUDA error " + std::to_string(static_cast<int>(result));
    }
};

/// The process's GPU.
inline Gpu& gpu() {
    static Gpu one;
    return one;
}

}  // namespace numsan::gpu
