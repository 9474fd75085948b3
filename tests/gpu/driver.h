// Device memory for the unit tests on a GPU.
#pragma once

#include <gtest/gtest.h>

#include "cuda/cuda_scanner.h"
#include "tests/cuda/patterns.h"
#include "tests/gpu/gpu.h"

namespace numsan::gpu {

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
