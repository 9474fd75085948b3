// The mean of many float16 numbers, as a library of templates would have it: each block adds up by shuffles and shared
// memory, and a second launch adds up what the blocks have. The sum is a float16, too: the first argument is what the
// numbers are scaled by; with 1 it fits, with 16 it is beyond 65504, and with 1e6 the scaled numbers are.
#include <cuda_fp16.h>

#include <cstdint>
#include <vector>

#include "check.h"

namespace {

constexpr int kCount = 8192, kThreads = 128, kBlocks = 16;

}  // namespace

namespace reduce {

struct Plus {
    template <typename T>
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};

template <typename T, typename Operation>
__device__ T in_warp(T value, Operation operation) {
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        value = operation(value, __shfl_down_sync(0xffffffffu, value, distance));
    return value;
}

/// One result for each block. `first`: what leaves a value as it is.
template <int kBlockThreads, typename T, typename Operation>
__global__ void blocks(const T* values, T* results, int count, T first, Operation operation) {
    __shared__ T warps[kBlockThreads / 32];
    T value = first;
    for (int i = blockIdx.x * kBlockThreads + threadIdx.x; i < count; i += gridDim.x * kBlockThreads)
        value = operation(value, values[i]);
    value = in_warp(value, operation);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < kBlockThreads / 32 ? warps[threadIdx.x] : first;
        value = in_warp(value, operation);
        if (threadIdx.x == 0) results[blockIdx.x] = value;
    }
}

}  // namespace reduce

__global__ void scale(__half* values, float factor, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = __float2half(__half2float(values[i]) * factor);
}

__global__ void divide(__half* value, __half count) { *value = *value / count; }

int main(int argc, char** argv) {
    const float factor = argc > 1 ? std::strtof(argv[1], nullptr) : 1.0f;
    std::vector<__half> numbers(kCount);
    uint32_t state = 11;
    for (__half& number : numbers) {
        state = state * 1664525u + 1013904223u;
        number = __float2half(static_cast<float>(state >> 24) / 128.0f);
    }
    __half *values = nullptr, *sums = nullptr, *mean = nullptr;
    CHECK(cudaMalloc(&values, kCount * sizeof(__half)));
    CHECK(cudaMalloc(&sums, kBlocks * sizeof(__half)));
    CHECK(cudaMalloc(&mean, sizeof(__half)));
    CHECK(cudaMemcpy(values, numbers.data(), kCount * sizeof(__half), cudaMemcpyHostToDevice));

    const __half zero = __float2half(0.0f);
    scale<<<kCount / kThreads, kThreads>>>(values, factor, kCount);  // with a factor beyond float16
    reduce::blocks<kThreads><<<kBlocks, kThreads>>>(values, sums, kCount, zero, reduce::Plus());
    reduce::blocks<kThreads><<<1, kThreads>>>(sums, mean, kBlocks, zero, reduce::Plus());  // BUG
    __half total, result;
    CHECK(cudaMemcpy(&total, mean, sizeof total, cudaMemcpyDeviceToHost));
    divide<<<1, 1>>>(mean, __float2half(static_cast<float>(kCount)));
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&result, mean, sizeof result, cudaMemcpyDeviceToHost));
    std::printf("sum %.17g mean %.17g\n", __half2float(total), __half2float(result));
    for (__half* memory : {values, sums, mean}) CHECK(cudaFree(memory));
    return 0;
}
