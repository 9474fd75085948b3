// libcublas.so.13 over the fake driver: handles, streams, factors on host or device, and products of matrices.
#include "tests/fakes/cublas/product.h"

using fake_cublas::Operand;
using fake_cublas::Product;

struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
};

namespace {

Operand operand(const void* data, cudaDataType type, int64_t leading, int64_t batch_stride = 0,
                cublasOperation_t transposed = CUBLAS_OP_N) {
    return {data, type, leading, batch_stride, transposed != CUBLAS_OP_N};
}

cublasStatus_t multiply(cublasHandle_t handle, Product product, const void* alpha, const void* beta,
                        cudaDataType factors) {
    if (product.m < 0 || product.n < 0 || product.k < 0) return CUBLAS_STATUS_INVALID_VALUE;
    product.factor_type = factors;
    if (handle->mode == CUBLAS_POINTER_MODE_HOST) {
        product.alpha = fake_cublas::number(alpha, factors, 0);
        product.beta = fake_cublas::number(beta, factors, 0);
    } else {
        product.device_alpha = alpha;
        product.device_beta = beta;
    }
    product.c = product.d;
    return product.launch(handle->stream);
}

cudaDataType factors_of(cublasComputeType_t compute) {
    if (compute == CUBLAS_COMPUTE_16F) return CUDA_R_16F;
    return compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
}

}  // namespace

#pragma GCC visibility push(default)

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    *handle = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "the function completed successfully" : "the function failed";
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
    *mode = handle->mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
    const Product product{m,
                          n,
                          k,
                          1,
                          operand(a, CUDA_R_32F, lda, 0, trans_a),
                          operand(b, CUDA_R_32F, ldb, 0, trans_b),
                          {},
                          operand(c, CUDA_R_32F, ldc),
                          {}};
    return multiply(handle, product, alpha, beta, CUDA_R_32F);
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n,
                              int k, const double* alpha, const double* a, int lda, const double* b, int ldb,
                              const double* beta, double* c, int ldc) {
    const Product product{m,
                          n,
                          k,
                          1,
                          operand(a, CUDA_R_64F, lda, 0, trans_a),
                          operand(b, CUDA_R_64F, ldb, 0, trans_b),
                          {},
                          operand(c, CUDA_R_64F, ldc),
                          {}};
    return multiply(handle, product, alpha, beta, CUDA_R_64F);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
    const Product product{m,
                          n,
                          k,
                          1,
                          operand(a, type_a, lda, 0, trans_a),
                          operand(b, type_b, ldb, 0, trans_b),
                          {},
                          operand(c, type_c, ldc),
                          {}};
    return multiply(handle, product, alpha, beta, factors_of(compute));
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b,
                                         int m, int n, int k, const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb, long long stride_b,
                                         const float* beta, float* c, int ldc, long long stride_c, int batch) {
    const Product product{m,
                          n,
                          k,
                          batch,
                          operand(a, CUDA_R_32F, lda, stride_a, trans_a),
                          operand(b, CUDA_R_32F, ldb, stride_b, trans_b),
                          {},
                          operand(c, CUDA_R_32F, ldc, stride_c),
                          {}};
    return multiply(handle, product, alpha, beta, CUDA_R_32F);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b,
                                          int m, int n, int k, const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stride_a, const void* b, cudaDataType type_b, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
    const Product product{m,
                          n,
                          k,
                          batch,
                          operand(a, type_a, lda, stride_a, trans_a),
                          operand(b, type_b, ldb, stride_b, trans_b),
                          {},
                          operand(c, type_c, ldc, stride_c),
                          {}};
    return multiply(handle, product, alpha, beta, factors_of(compute));
}

#pragma GCC visibility pop
