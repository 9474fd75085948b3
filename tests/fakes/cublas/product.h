// What the fake cuBLAS computes: a product of matrices, as one kernel of the fake driver.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdint>

namespace fake_cublas {

struct Operand {
    const void* data = nullptr;
    cudaDataType type = CUDA_R_32F;
    int64_t leading = 0, batch_stride = 0;
    bool transposed = false;

    Operand operator[](int64_t batch) const;
    double at(int64_t row, int64_t column) const;
    void set(int64_t row, int64_t column, double value) const;
};

/// d = alpha * a * b + beta * c + bias, by columns. Sums of float32 and narrower are float32's, as cuBLAS's are.
struct Product {
    int64_t m = 0, n = 0, k = 0, batch = 1;
    Operand a, b, c, d, bias;
    double alpha = 1, beta = 0;
    const void *device_alpha = nullptr, *device_beta = nullptr;  ///< where these are not null they count
    cudaDataType factor_type = CUDA_R_32F;

    void compute() const;
    /// Launches compute() in the stream; the library's status.
    cublasStatus_t launch(void* stream) const;
};

/// A number of that type; 0 of a type that the fake does not know.
double number(const void* data, cudaDataType type, int64_t index);

}  // namespace fake_cublas
