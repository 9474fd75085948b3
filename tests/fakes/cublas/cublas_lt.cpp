// The part of libcublas.so.13 that is libcublasLt.so.13's: descriptors, and a product with a bias.
#include <cstring>
#include <map>
#include <vector>

#include "tests/fakes/cublas/product.h"

using fake_cublas::Operand;
using fake_cublas::Product;

namespace {

/// Attributes as they were set, by number. Behind the opaque pointer of a descriptor.
struct Attributes {
    std::map<int, std::vector<char>> values;

    template <class T>
    T value(int attribute, T missing) const {
        const auto found = values.find(attribute);
        if (found != values.end()) std::memcpy(&missing, found->second.data(), sizeof missing);
        return missing;
    }
    template <class T>
    void set(int attribute, T value) {
        set(attribute, &value, sizeof value);
    }
    void set(int attribute, const void* data, size_t bytes) {
        const char* const begin = static_cast<const char*>(data);
        values[attribute].assign(begin, begin + bytes);
    }
    cublasStatus_t get(int attribute, void* data, size_t bytes, size_t* written) const {
        const auto found = values.find(attribute);
        if (found == values.end() || found->second.size() != bytes) return CUBLAS_STATUS_INVALID_VALUE;
        std::memcpy(data, found->second.data(), bytes);
        if (written != nullptr) *written = bytes;
        return CUBLAS_STATUS_SUCCESS;
    }
};

Attributes& of(void* descriptor) { return *static_cast<Attributes*>(descriptor); }

Operand operand(const void* data, cublasLtMatrixLayout_t layout, int transposed) {
    const Attributes& shape = of(layout);
    return {data, shape.value<cudaDataType>(CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_32F),
            shape.value<int64_t>(CUBLASLT_MATRIX_LAYOUT_LD, 0),
            shape.value<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0), transposed != CUBLAS_OP_N};
}

}  // namespace

#pragma GCC visibility push(default)

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(new int);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    auto* const made = new Attributes;
    made->set(CUBLASLT_MATRIX_LAYOUT_TYPE, type);
    made->set(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL);
    made->set(CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
    made->set(CUBLASLT_MATRIX_LAYOUT_COLS, columns);
    made->set(CUBLASLT_MATRIX_LAYOUT_LD, leading);
    made->set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(1));
    made->set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(0));
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* data,
                                                size_t bytes) {
    of(layout).set(attribute, data, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, void* data, size_t bytes,
                                                size_t* written) {
    return of(layout).get(attribute, data, bytes, written);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t, cudaDataType_t scale) {
    auto* const made = new Attributes;
    made->set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
    made->set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t(CUBLASLT_POINTER_MODE_HOST));
    made->set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_DEFAULT));
    *description = reinterpret_cast<cublasLtMatmulDesc_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* data,
                                              size_t bytes) {
    of(description).set(attribute, data, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, void* data, size_t bytes,
                                              size_t* written) {
    return of(description).get(attribute, data, bytes, written);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void*, size_t,
                              cudaStream_t stream) {
    const Attributes& product = of(description);
    const auto trans_a = product.value<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N);
    const auto scale = product.value<cudaDataType>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_32F);
    Product made;
    made.m = static_cast<int64_t>(of(layout_d).value<uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, 0));
    made.n = static_cast<int64_t>(of(layout_d).value<uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, 0));
    made.k = static_cast<int64_t>(of(layout_a).value<uint64_t>(
        trans_a == CUBLAS_OP_N ? CUBLASLT_MATRIX_LAYOUT_COLS : CUBLASLT_MATRIX_LAYOUT_ROWS, 0));
    made.batch = of(layout_d).value<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
    made.a = operand(a, layout_a, trans_a);
    made.b = operand(b, layout_b, product.value<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N));
    made.c = operand(c, layout_c, CUBLAS_OP_N);
    made.d = operand(d, layout_d, CUBLAS_OP_N);
    made.alpha = fake_cublas::number(alpha, scale, 0);
    made.beta = fake_cublas::number(beta, scale, 0);
    if ((product.value<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, 1) & CUBLASLT_EPILOGUE_BIAS) != 0)
        made.bias = {product.value<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr), made.d.type, made.m, 0,
                     false};
    return made.launch(stream);
}

#pragma GCC visibility pop
