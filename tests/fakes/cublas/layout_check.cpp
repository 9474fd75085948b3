// Whether what numsan writes down of cuBLAS is what the toolkit's headers say. Nothing here runs.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdint>
#include <type_traits>

#include "interpose/libraries/cublas/cublas_abi.h"
#include "tests/fakes/layout_check.h"

namespace abi = numsan::cublas;
using layout_check::Same;

// Two of these names are also functions for C++, which take a type where the library's take a mode: theirs are told by
// their types.
template <class Int>
using TheirGemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int, Int, Int, const void*,
                                   const void*, cudaDataType, Int, const void*, cudaDataType, Int, const void*, void*,
                                   cudaDataType, Int, cublasComputeType_t, cublasGemmAlgo_t);
template <class Int>
using TheirGemmBatchedEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int, Int, Int,
                                          const void*, const void*, cudaDataType, Int, long long, const void*,
                                          cudaDataType, Int, long long, const void*, void*, cudaDataType, Int,
                                          long long, Int, cublasComputeType_t, cublasGemmAlgo_t);
#define THEIRS_Gemm(function, integer) &(function)
#define THEIRS_GemmBatched(function, integer) &(function)
#define THEIRS_LtMatmul(function, integer) &(function)
#define THEIRS_GemmEx(function, integer) static_cast<TheirGemmEx<integer>*>(&(function))
#define THEIRS_GemmBatchedEx(function, integer) static_cast<TheirGemmBatchedEx<integer>*>(&(function))

#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) \
    static_assert(Same<abi::form<integer>, std::remove_pointer_t<decltype(THEIRS_##form(function, integer))>>::check());
#include "interpose/libraries/cublas/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL

static_assert(Same<abi::GetStream, decltype(cublasGetStream_v2)>::check());
static_assert(Same<abi::GetPointerMode, decltype(cublasGetPointerMode_v2)>::check());
static_assert(Same<abi::GetAttribute, decltype(cublasLtMatrixLayoutGetAttribute)>::check());
static_assert(Same<abi::GetAttribute, decltype(cublasLtMatmulDescGetAttribute)>::check());

#define SAME(ours, theirs) static_assert(static_cast<int>(abi::ours) == static_cast<int>(theirs))
#define SAME_TYPE(ours, theirs) static_assert(static_cast<int>(numsan::ours) == static_cast<int>(theirs))
SAME(kSuccess, CUBLAS_STATUS_SUCCESS);
SAME(kPointersOfHost, CUBLAS_POINTER_MODE_HOST);
SAME(kPointersOfHost, CUBLASLT_POINTER_MODE_HOST);
SAME(kPointersOfDevice, CUBLAS_POINTER_MODE_DEVICE);
SAME(kPointersOfDevice, CUBLASLT_POINTER_MODE_DEVICE);
SAME_TYPE(kInteger8, CUDA_R_8I);
SAME_TYPE(kComplexInteger8, CUDA_C_8I);
SAME_TYPE(kComplexUnsigned32, CUDA_C_32U);
SAME_TYPE(kInteger4, CUDA_R_4I);
SAME_TYPE(kComplexUnsigned64, CUDA_C_64U);
SAME(kLayoutPlaneOffset, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET);
SAME(kMatmulBiasStride, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
SAME(kMatmulAuxStride, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
SAME(kMatmulScaleOfC, CUBLASLT_MATMUL_DESC_C_SCALE_POINTER);
SAME(kMatmulScaleOfD, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
SAME(kMatmulLargestOfD, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER);
SAME(kMatmulScaleOfAux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER);
SAME(kMatmulLargestOfAux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER);
#if CUBLAS_VERSION >= 130000  // these are of later versions than the rest
SAME(kLayoutBatchMode, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE);
SAME(kMatmulModeOfA, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
SAME(kMatmulModeOfB, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
SAME(kMatmulModeOfC, CUBLASLT_MATMUL_DESC_C_SCALE_MODE);
SAME(kMatmulModeOfD, CUBLASLT_MATMUL_DESC_D_SCALE_MODE);
SAME(kMatmulModeOfAux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE);
SAME(kMatmulScaleOutOfD, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER);
#endif
SAME(kNoTranspose, CUBLAS_OP_N);
SAME_TYPE(kReal32, CUDA_R_32F);
SAME_TYPE(kReal64, CUDA_R_64F);
SAME_TYPE(kReal16, CUDA_R_16F);
SAME_TYPE(kComplex32, CUDA_C_32F);
SAME_TYPE(kComplex64, CUDA_C_64F);
SAME_TYPE(kComplex16, CUDA_C_16F);
SAME_TYPE(kRealB16, CUDA_R_16BF);
SAME_TYPE(kRealE4M3, CUDA_R_8F_E4M3);
SAME_TYPE(kRealE5M2, CUDA_R_8F_E5M2);
SAME(kCompute16, CUBLAS_COMPUTE_16F);
SAME(kCompute16Pedantic, CUBLAS_COMPUTE_16F_PEDANTIC);
SAME(kCompute64, CUBLAS_COMPUTE_64F);
SAME(kCompute64Pedantic, CUBLAS_COMPUTE_64F_PEDANTIC);
SAME(kCompute64Emulated, CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT);
SAME(kLayoutType, CUBLASLT_MATRIX_LAYOUT_TYPE);
SAME(kLayoutOrder, CUBLASLT_MATRIX_LAYOUT_ORDER);
SAME(kLayoutRows, CUBLASLT_MATRIX_LAYOUT_ROWS);
SAME(kLayoutColumns, CUBLASLT_MATRIX_LAYOUT_COLS);
SAME(kLayoutLeading, CUBLASLT_MATRIX_LAYOUT_LD);
SAME(kLayoutBatch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(kLayoutBatchOffset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(kByColumns, CUBLASLT_ORDER_COL);
SAME(kByRows, CUBLASLT_ORDER_ROW);
SAME(kMatmulScaleType, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
SAME(kMatmulPointerMode, CUBLASLT_MATMUL_DESC_POINTER_MODE);
SAME(kMatmulEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(kMatmulBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(kMatmulAux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(kMatmulAuxLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(kMatmulScaleOfA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(kMatmulScaleOfB, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SAME(kMatmulAuxType, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE);
SAME(kMatmulBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
SAME(kEpilogueGelu, CUBLASLT_EPILOGUE_GELU);
static_assert((abi::kEpilogueGelu | abi::kEpilogueAux) == int(CUBLASLT_EPILOGUE_GELU_AUX));
static_assert((abi::kEpilogueGeluBackward | abi::kEpilogueAux) == int(CUBLASLT_EPILOGUE_DGELU));
static_assert((abi::kEpilogueBiasGradients & int(CUBLASLT_EPILOGUE_DGELU_BGRAD)) != 0);
static_assert((abi::kEpilogueBiasGradients & int(CUBLASLT_EPILOGUE_BGRADA)) != 0);
SAME(kEpilogueBiasGradientOfB, CUBLASLT_EPILOGUE_BGRADB);
