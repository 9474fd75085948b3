#include "interpose/libraries/cublas_matrix.h"

#include <cstring>

#include "interpose/libraries/cublas_abi.h"

namespace numsan::cublas {

std::optional<DType> dtype_of(int type) noexcept {
    switch (type) {
        case kReal32: return DType::Float32;
        case kReal64: return DType::Float64;
        case kReal16: return DType::Float16;
        case kRealB16: return DType::BFloat16;
        case kComplex16: return DType::Complex32;
        case kComplex32: return DType::Complex64;
        case kComplex64: return DType::Complex128;
        case kRealE4M3: return DType::Float8E4M3Fn;
        case kRealE5M2: return DType::Float8E5M2;
        default: return std::nullopt;
    }
}

void add(LibraryCall& call, const Matrix& matrix, bool read, bool written) noexcept {
    if (!matrix.dtype || matrix.data == nullptr) return;  // integers are no concern of numsan's
    if (call.count == LibraryCall::kMostBuffers) {
        call.complete = call.complete && !written;
        return;
    }
    LibraryCall::Buffer& buffer = call.buffers[call.count++];
    buffer = {reinterpret_cast<uint64_t>(matrix.data), *matrix.dtype, read, written, 0, {}, {}};
    const auto dim = [&](int64_t size, int64_t stride) {
        buffer.sizes[buffer.ndim] = size;
        buffer.strides[buffer.ndim++] = stride;
    };
    if (matrix.count > 1) dim(matrix.count, matrix.batch_stride);
    dim(matrix.rows, 1);
    if (matrix.columns != 1) dim(matrix.columns, matrix.leading);
}

bool Factors::has_no_beta() const noexcept {
    static constexpr unsigned char kZeros[16] = {};
    return beta != nullptr && of_host && std::memcmp(beta, kZeros, info(dtype).element_bytes()) == 0;
}

void Factors::add_to(LibraryCall& call) const noexcept {
    const auto add_as = [&](auto number, const void* factor) {
        std::memcpy(&number, factor, sizeof number);
        call.numbers[call.number_count++] = static_cast<double>(number);
    };
    for (const void* factor : {alpha, beta}) {
        if (factor == nullptr || !of_host) continue;
        if (info(dtype).lane_bytes == sizeof(float)) add_as(float{}, factor);
        if (info(dtype).lane_bytes == sizeof(double)) add_as(double{}, factor);
    }
}

DType factor_type(int compute, DType result) noexcept {
    const bool complex = info(result).lanes == 2;
    switch (compute) {
        case kCompute16:
        case kCompute16Pedantic: return complex ? DType::Complex32 : DType::Float16;
        case kCompute64:
        case kCompute64Pedantic:
        case kCompute64Emulated: return complex ? DType::Complex128 : DType::Float64;
        default: return complex ? DType::Complex64 : DType::Float32;
    }
}

}  // namespace numsan::cublas
