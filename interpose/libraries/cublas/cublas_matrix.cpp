#include "interpose/libraries/cublas/cublas_matrix.h"

#include <cstring>

#include "interpose/libraries/cublas/cublas_abi.h"

namespace numsan::cublas {

void add(LibraryCall& call, const Matrix& matrix, bool read, bool written) noexcept {
    if (matrix.rows <= 0 || matrix.columns <= 0 || matrix.count <= 0) return;
    LibraryCall::Buffer* const buffer = call.add(matrix.data, matrix.elements, read, written);
    if (buffer == nullptr) return;
    const auto dim = [&](int64_t size, int64_t stride) {
        buffer->sizes[buffer->ndim] = size;
        buffer->strides[buffer->ndim++] = stride;
    };
    if (matrix.count > 1) dim(matrix.count, matrix.batch_stride);
    dim(matrix.rows, matrix.by_rows ? matrix.leading : 1);
    if (matrix.columns != 1) dim(matrix.columns, matrix.by_rows ? 1 : matrix.leading);
}

bool Factors::has_no_beta() const noexcept {
    if (beta == nullptr || place != Place::Host) return false;
    const auto* const bytes = static_cast<const unsigned char*>(beta);
    for (uint32_t i = 0; i < info(dtype).element_bytes(); ++i) {
        const bool has_sign = (i + 1) % info(dtype).lane_bytes == 0;  // the last byte of a number; -0 is 0
        if ((bytes[i] & (has_sign ? 0x7f : 0xff)) != 0) return false;
    }
    return true;
}

void Factors::add_to(LibraryCall& call) const noexcept {
    const auto add_as = [&](auto number, const void* factor) {
        std::memcpy(&number, factor, sizeof number);
        call.numbers[call.number_count++] = static_cast<double>(number);
    };
    call.explained = call.explained && place != Place::Elsewhere;
    for (const void* factor : {alpha, beta}) {
        if (factor == nullptr) continue;
        if (place == Place::Device) add(call, {factor, {dtype}, 1, 1, 1}, true, false);
        if (place != Place::Host) continue;
        if (info(dtype).lane_bytes == sizeof(float)) add_as(float{}, factor);
        if (info(dtype).lane_bytes == sizeof(double)) add_as(double{}, factor);
    }
}

DType factor_type(int compute, const Elements& result) noexcept {
    const bool complex = result.dtype && info(*result.dtype).lanes == 2;
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
