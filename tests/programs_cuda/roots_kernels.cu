#include "roots_kernels.h"

namespace roots {

__global__ void scale(float* values, float factor, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= factor;
}

__global__ void improve(float* roots, const float* of, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float x = roots[i], square = x * x;
    roots[i] = x * (square + 3.0f * of[i]) / (3.0f * square + of[i]);
}

}  // namespace roots
