// What code that nvcc made has registered: binaries for the device, and for each kernel the function that launches it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace fake_cudart {

/// The error is kept for the thread.
cudaError_t said(cudaError_t error);
/// Errors of the driver have the same numbers.
cudaError_t said(CUresult result);
/// Initialises the driver and makes the device's primary context the thread's, if it has none.
CUresult enter();
/// The kernel that `function` launches; its binary is loaded first. cudaErrorInvalidDeviceFunction: it is none.
cudaError_t kernel_of(const void* function, CUfunction& kernel);

}  // namespace fake_cudart
