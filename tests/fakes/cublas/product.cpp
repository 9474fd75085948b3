#include "tests/fakes/cublas/product.h"

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace fake_cublas {
namespace {

/// Calls act(pointer to elements of the type).
template <class Act>
void as(cudaDataType type, const void* data, Act act) {
    void* const memory = const_cast<void*>(data);
    switch (type) {
        case CUDA_R_32F: return act(static_cast<float*>(memory));
        case CUDA_R_64F: return act(static_cast<double*>(memory));
        case CUDA_R_16F: return act(static_cast<__half*>(memory));
        case CUDA_R_16BF: return act(static_cast<__nv_bfloat16*>(memory));
        default: return;
    }
}

int64_t bytes_of(cudaDataType type) {
    int64_t bytes = 0;
    as(type, nullptr, [&](auto* elements) { bytes = sizeof *elements; });
    return bytes;
}

}  // namespace

double number(const void* data, cudaDataType type, int64_t index) {
    double value = 0;
    as(type, data, [&](const auto* elements) {
        if constexpr (sizeof *elements == 2)
            value = static_cast<double>(static_cast<float>(elements[index]));
        else
            value = static_cast<double>(elements[index]);
    });
    return value;
}

Operand Operand::operator[](int64_t batch) const {
    Operand one = *this;
    one.data = static_cast<const char*>(data) + batch * batch_stride * bytes_of(type);
    return one;
}

double Operand::at(int64_t row, int64_t column) const {
    return number(data, type, transposed ? column + row * leading : row + column * leading);
}

void Operand::set(int64_t row, int64_t column, double value) const {
    as(type, data, [&](auto* elements) {
        auto& element = elements[row + column * leading];
        if constexpr (sizeof element == 2)
            element = static_cast<float>(value);
        else
            element = static_cast<std::remove_reference_t<decltype(element)>>(value);
    });
}

void Product::compute() const {
    const double of_a = device_alpha != nullptr ? number(device_alpha, factor_type, 0) : alpha;
    const double of_c = device_beta != nullptr ? number(device_beta, factor_type, 0) : beta;
    for (int64_t one = 0; one < batch; ++one) {
        const Operand from_a = a[one], from_b = b[one], from_c = c[one], to = d[one];
        for (int64_t column = 0; column < n; ++column) {
            for (int64_t row = 0; row < m; ++row) {
                double sum = 0;
                for (int64_t i = 0; i < k; ++i) {
                    sum += from_a.at(row, i) * from_b.at(i, column);
                    if (d.type != CUDA_R_64F) sum = static_cast<double>(static_cast<float>(sum));
                }
                sum *= of_a;
                if (of_c != 0) sum += of_c * from_c.at(row, column);
                if (bias.data != nullptr) sum += bias.at(row, 0);
                to.set(row, column, sum);
            }
        }
    }
}

cublasStatus_t Product::launch(void* stream) const {
    // Found once: no module may be loaded while a stream is captured.
    static const CUfunction kernel = [] {
        CUmodule module;
        CUfunction found = nullptr;
        if (cuModuleLoadData(&module, "host functions") == CUDA_SUCCESS)
            cuModuleGetFunction(&found, module, "fake_cublas_product");
        return found;
    }();
    if (kernel == nullptr) return CUBLAS_STATUS_INTERNAL_ERROR;
    Product copy = *this;
    void* arguments[] = {&copy};
    const CUresult launched =
        cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, static_cast<CUstream>(stream), arguments, nullptr);
    return launched == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace fake_cublas

// A kernel of the fake driver's. Its name says nothing of what it is given, as most of cuBLAS's.
extern "C" {
__attribute__((visibility("default"))) extern const int fake_cublas_product_sizes[] = {sizeof(fake_cublas::Product), 0};
__attribute__((visibility("default"))) void fake_cublas_product(void** arguments) {
    static_cast<const fake_cublas::Product*>(arguments[0])->compute();
}
}
