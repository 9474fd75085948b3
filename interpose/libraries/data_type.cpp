#include "interpose/libraries/data_type.h"

namespace numsan {

LibraryCall::Elements elements_of(int type) noexcept {
    switch (type) {
        case kReal32: return {DType::Float32};
        case kReal64: return {DType::Float64};
        case kReal16: return {DType::Float16};
        case kRealB16: return {DType::BFloat16};
        case kComplex16: return {DType::Complex32};
        case kComplex32: return {DType::Complex64};
        case kComplex64: return {DType::Complex128};
        case kRealE4M3: return {DType::Float8E4M3Fn};
        case kRealE5M2: return {DType::Float8E5M2};
        default: break;
    }
    const bool of_bytes_or_more = type == kInteger8 || (type >= kComplexInteger8 && type <= kComplexUnsigned32);
    return {std::nullopt, of_bytes_or_more || (type >= kInteger4 && type <= kComplexUnsigned64)};
}

}  // namespace numsan
