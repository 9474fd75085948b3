// What of the C interfaces of cuBLAS and cuBLASLt (13.0, cublas_api.h and cublasLt.h) is used. Written
// down here, as numsan is built where there is no toolkit; tests/fakes/cublas/layout_check.cpp compares it with the
// toolkit's own headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/libraries/data_type.h"

namespace numsan::cublas {

inline constexpr int kSuccess = 0;
inline constexpr int kPointersOfHost = 0;    ///< alpha and beta, by cublasPointerMode_t and cublasLtPointerMode_t
inline constexpr int kPointersOfDevice = 1;  ///< the same
inline constexpr int kNoTranspose = 0;

/// cublasComputeType_t: the widths of what alpha and beta point to.
enum ComputeType : int {
    kCompute16 = 64,
    kCompute16Pedantic = 65,
    kCompute64 = 70,
    kCompute64Pedantic = 71,
    kCompute64Emulated = 79,
};

/// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int {
    kLayoutType = 0,
    kLayoutOrder = 1,
    kLayoutRows = 2,
    kLayoutColumns = 3,
    kLayoutLeading = 4,
    kLayoutBatch = 5,
    kLayoutBatchOffset = 6,
    kLayoutPlaneOffset = 7,
    kLayoutBatchMode = 8,
};
enum Order : int { kByColumns = 0, kByRows = 1 };

/// cublasLtMatmulDescAttributes_t
enum MatmulAttribute : int {
    kMatmulScaleType = 1,
    kMatmulPointerMode = 2,
    kMatmulEpilogue = 7,
    kMatmulBias = 8,
    kMatmulBiasStride = 10,
    kMatmulAux = 11,
    kMatmulAuxLeading = 12,
    kMatmulAuxStride = 13,
    kMatmulScaleOfA = 17,
    kMatmulScaleOfB = 18,
    kMatmulScaleOfC = 19,
    kMatmulScaleOfD = 20,
    kMatmulLargestOfD = 21,
    kMatmulAuxType = 22,
    kMatmulScaleOfAux = 23,
    kMatmulLargestOfAux = 24,
    kMatmulBiasType = 26,
    kMatmulModeOfA = 31,
    kMatmulModeOfB = 32,
    kMatmulModeOfC = 33,
    kMatmulModeOfD = 34,
    kMatmulModeOfAux = 35,
    kMatmulScaleOutOfD = 36,
};
/// cublasLtEpilogue_t, by its bits.
enum Epilogue : uint32_t {
    kEpilogueBias = 4,
    kEpilogueGelu = 32,
    kEpilogueGeluBackward = 64,
    kEpilogueAux = 128,
    kEpilogueBiasGradients = 16 | 256 | 512,  ///< of D, A or B
    kEpilogueBiasGradientOfB = 512,
};

template <class Int>
using Gemm = int(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a, Int lda,
                 const void* b, Int ldb, const void* beta, void* c, Int ldc);
template <class Int>
using GemmEx = int(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a,
                   int type_a, Int lda, const void* b, int type_b, Int ldb, const void* beta, void* c, int type_c,
                   Int ldc, int compute, int algorithm);
template <class Int>
using GemmBatched = int(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a,
                        Int lda, long long stride_a, const void* b, Int ldb, long long stride_b, const void* beta,
                        void* c, Int ldc, long long stride_c, Int batch);
template <class Int>
using GemmBatchedEx = int(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a,
                          int type_a, Int lda, long long stride_a, const void* b, int type_b, Int ldb,
                          long long stride_b, const void* beta, void* c, int type_c, Int ldc, long long stride_c,
                          Int batch, int compute, int algorithm);
template <class>
using LtMatmul = int(void* handle, void* description, const void* alpha, const void* a, void* layout_a, const void* b,
                     void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                     const void* algorithm, void* workspace, size_t workspace_bytes, void* stream);

using GetStream = int(void* handle, void** stream);
using GetPointerMode = int(void* handle, int* mode);
/// cublasLtMatrixLayoutGetAttribute and cublasLtMatmulDescGetAttribute.
using GetAttribute = int(void* of, int attribute, void* value, size_t bytes, size_t* written);

}  // namespace numsan::cublas
