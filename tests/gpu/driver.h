// The driver as tests on a real GPU use it: found at run time, so that the tests start where there is none and say so.
// With build/fakes on LD_LIBRARY_PATH it is the fake one, which shows that the tests themselves are right.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "cuda/cuda_scanner.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {

class Gpu {
  public:
    template <class Call>
    static Call symbol(const char* name) {
        static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        return library == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(library, name));
    }

    decltype(&::cuInit) init = symbol<decltype(&::cuInit)>("cuInit");
    decltype(&::cuDevicePrimaryCtxRetain) retain = symbol<decltype(retain)>("cuDevicePrimaryCtxRetain");
    decltype(&::cuCtxSetCurrent) set_current = symbol<decltype(set_current)>("cuCtxSetCurrent");
    decltype(&::cuCtxSynchronize) synchronize = symbol<decltype(synchronize)>("cuCtxSynchronize");
    decltype(&::cuStreamCreate) stream_create = symbol<decltype(stream_create)>("cuStreamCreate");
    decltype(&::cuMemAlloc) allocate = symbol<decltype(allocate)>("cuMemAlloc_v2");
    decltype(&::cuMemFree) free = symbol<decltype(free)>("cuMemFree_v2");
    decltype(&::cuMemcpyHtoDAsync) to_device = symbol<decltype(to_device)>("cuMemcpyHtoDAsync_v2");
    decltype(&::cuMemcpyDtoDAsync) copy = symbol<decltype(copy)>("cuMemcpyDtoDAsync_v2");
    decltype(&::cuStreamBeginCapture) begin_capture = symbol<decltype(begin_capture)>("cuStreamBeginCapture_v2");
    decltype(&::cuStreamEndCapture) end_capture = symbol<decltype(end_capture)>("cuStreamEndCapture");
    decltype(&::cuGraphInstantiateWithFlags) instantiate = symbol<decltype(instantiate)>("cuGraphInstantiateWithFlags");
    decltype(&::cuGraphLaunch) launch_graph = symbol<decltype(launch_graph)>("cuGraphLaunch");

    CUcontext context = nullptr;
    CUstream stream = nullptr;

    /// Empty, or why there is no GPU to test on.
    std::string open() {
        if (init == nullptr) return "no CUDA driver here (libcuda.so.1)";
        CUresult result = init(0);
        if (result == CUDA_SUCCESS) result = retain(&context, 0);
        if (result == CUDA_SUCCESS) result = set_current(context);
        if (result == CUDA_SUCCESS) result = stream_create(&stream, CU_STREAM_NON_BLOCKING);
        return result == CUDA_SUCCESS ? "" : "the CUDA driver has no usable device: error " + std::to_string(result);
    }
};

/// The process's GPU.
inline Gpu& gpu() {
    static Gpu one;
    return one;
}

/// Device memory with the bytes of a tensor's memory on the host.
class DeviceCopy {
  public:
    DeviceCopy(const void* bytes, size_t size) : size_(size) {
        EXPECT_EQ(gpu().allocate(&data_, size), CUDA_SUCCESS);
        set(bytes);
    }
    ~DeviceCopy() {
        EXPECT_EQ(gpu().synchronize(), CUDA_SUCCESS);
        EXPECT_EQ(gpu().free(data_), CUDA_SUCCESS);
    }
    DeviceCopy(const DeviceCopy&) = delete;
    DeviceCopy& operator=(const DeviceCopy&) = delete;

    void set(const void* bytes) { EXPECT_EQ(gpu().to_device(data_, bytes, size_, gpu().stream), CUDA_SUCCESS); }
    CUdeviceptr address() const { return data_; }
    const void* data() const { return reinterpret_cast<const void*>(data_); }

  private:
    CUdeviceptr data_ = 0;
    size_t size_;
};

}  // namespace numsan::gpu
