// What calls of cuBLAS's say of matrices and factors, as buffers and numbers of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "host/kernels/library_call.h"

namespace numsan::cublas {

/// Of a cudaDataType; none of integers, and of types that have no row in dtype.def.
std::optional<DType> dtype_of(int type) noexcept;

/// A matrix as it lies in memory, by columns: `count` of them, one `batch_stride` after the other. Sizes in elements.
struct Matrix {
    const void* data;
    std::optional<DType> dtype;
    int64_t rows, columns, leading;
    int64_t count = 1, batch_stride = 0;
};

/// Adds it to what the call reads or writes. Where there is no room the call is not complete.
void add(LibraryCall& call, const Matrix& matrix, bool read, bool written) noexcept;

/// What the matrices are multiplied by, or a sum of products begins with.
struct Factors {
    const void *alpha, *beta;
    bool of_host;  ///< false: they lie in a device's memory, and are not read here
    DType dtype;

    /// Beta is 0: what it would be multiplied with is not read.
    bool has_no_beta() const noexcept;
    /// Adds those that can be read to the numbers of the call.
    void add_to(LibraryCall& call) const noexcept;
};

/// The type of factors where a cublasComputeType_t says it, for results of type `result`.
DType factor_type(int compute, DType result) noexcept;

}  // namespace numsan::cublas
