// Kernels of roots.cu, which are defined in a file of their own.
#pragma once

namespace roots {

__global__ void scale(float* values, float factor, int count);
/// A step of Halley's iteration for the square roots of `of`.
__global__ void improve(float* roots, const float* of, int count);

}  // namespace roots
