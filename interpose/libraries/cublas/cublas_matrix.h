// What calls of cuBLAS's say of matrices and factors, as buffers and numbers of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "host/kernels/library_call.h"

namespace numsan::cublas {

using Elements = LibraryCall::Elements;

/// A matrix as it lies in memory: `count` of them, one `batch_stride` after the other. Sizes in elements.
struct Matrix {
    const void* data;
    Elements elements;
    int64_t rows, columns;
    int64_t leading;  ///< from one column to the next; `by_rows`: from one row to the next
    int64_t count = 1, batch_stride = 0;
    bool by_rows = false;
};

/// Adds it to what the call reads or writes; one without elements is nothing.
void add(LibraryCall& call, const Matrix& matrix, bool read, bool written) noexcept;

/// What the matrices are multiplied by, or a sum of products begins with.
struct Factors {
    enum class Place : uint8_t {
        Host,
        Device,
        Elsewhere,  ///< vectors of them, or one here and one there
    };
    const void *alpha, *beta;
    Place place;
    DType dtype;

    /// Beta is 0: what it would be multiplied with is not read.
    bool has_no_beta() const noexcept;
    /// Adds those that lie on the host to the numbers of the call, and others to what it reads.
    void add_to(LibraryCall& call) const noexcept;
};

/// The type of factors where a cublasComputeType_t says it, for such results.
DType factor_type(int compute, const Elements& result) noexcept;

}  // namespace numsan::cublas
