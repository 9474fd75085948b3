// libcudart.so.13 over the fake driver: memory, copies, streams, errors and launches of programs that nvcc compiled. As
// the real one it does all by the driver's calls, which is where tools look.
#include "tests/fakes/cudart/kernels.h"

namespace {

thread_local cudaError_t last = cudaSuccess;

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

/// Runs a call of the driver's in the thread's context.
template <class Call>
cudaError_t driver(Call call) {
    const CUresult entered = fake_cudart::enter();
    return fake_cudart::said(entered != CUDA_SUCCESS ? entered : call());
}

CUresult copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    switch (kind) {
        case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(address(to), from, bytes, stream);
        case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(to, address(from), bytes, stream);
        case cudaMemcpyDeviceToDevice: return cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
        case cudaMemcpyDefault: return cuMemcpyAsync(address(to), address(from), bytes, stream);
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult then_wait(CUresult result, cudaStream_t stream) {
    return result != CUDA_SUCCESS ? result : cuStreamSynchronize(stream);
}

}  // namespace

cudaError_t fake_cudart::said(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
}
cudaError_t fake_cudart::said(CUresult result) { return said(static_cast<cudaError_t>(result)); }

#pragma GCC visibility push(default)

cudaError_t cudaMalloc(void** memory, size_t bytes) {
    return driver([&] {
        CUdeviceptr made = 0;
        const CUresult result = cuMemAlloc(&made, bytes);
        *memory = reinterpret_cast<void*>(made);
        return result;
    });
}
cudaError_t cudaFree(void* memory) {
    return driver([&] { return memory != nullptr ? cuMemFree(address(memory)) : CUDA_SUCCESS; });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return driver([&] { return then_wait(copy(to, from, bytes, kind, nullptr), nullptr); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return driver([&] { return copy(to, from, bytes, kind, stream); });
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
    return driver([&] { return cuMemsetD8Async(address(memory), static_cast<unsigned char>(value), bytes, nullptr); });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return driver([&] { return cuStreamCreate(stream, CU_STREAM_DEFAULT); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return driver([&] { return cuStreamDestroy(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return driver([&] { return cuStreamSynchronize(stream); });
}
cudaError_t cudaDeviceSynchronize() {
    return driver([] { return cuCtxSynchronize(); });
}

cudaError_t cudaGetDeviceCount(int* count) {
    return driver([&] { return cuDeviceGetCount(count); });
}
cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return driver([] { return CUDA_SUCCESS; });
}
cudaError_t cudaSetDevice(int device) {
    return driver([&] { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
    CUfunction kernel = nullptr;
    if (const cudaError_t error = fake_cudart::kernel_of(function, kernel)) return error;
    return fake_cudart::said(cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                            static_cast<unsigned>(shared), stream, arguments, nullptr));
}

cudaError_t cudaGetLastError() {
    const cudaError_t error = last;
    last = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError() { return last; }

const char* cudaGetErrorName(cudaError_t error) {
    const char* name = nullptr;
    return cuGetErrorName(static_cast<CUresult>(error), &name) == CUDA_SUCCESS ? name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
    const char* text = nullptr;
    return cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS ? text : "unrecognized error code";
}

#pragma GCC visibility pop
