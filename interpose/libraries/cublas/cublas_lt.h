// What a product by cuBLASLt says of itself, by its descriptors.
#pragma once

#include "host/kernels/library_call.h"
#include "interpose/libraries/cublas/cublas_abi.h"

namespace numsan::cublas {

/// What cublasLtMatmul() is given.
struct LtProduct {
    void* description;
    const void *alpha, *a;
    void* layout_a;
    const void* b;
    void* layout_b;
    const void *beta, *c;
    void* layout_c;
    void *d, *layout_d;
    void *workspace, *stream;
};

/// Adds to the call what it reads and writes. `of_layout` and `of_matmul` are the library's: they read descriptors.
void describe(LibraryCall& call, const LtProduct& product, GetAttribute* of_layout, GetAttribute* of_matmul) noexcept;

}  // namespace numsan::cublas
