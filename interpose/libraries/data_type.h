// What CUDA's libraries have for elements, by cudaDataType (13.0, library_types.h). Written down here, as numsan is
// built where there is no toolkit; tests/fakes/cublas/layout_check.cpp compares it with the toolkit's own header.
#pragma once

#include "host/kernels/library_call.h"

namespace numsan {

/// cudaDataType
enum DataType : int {
    kReal32 = 0,
    kReal64 = 1,
    kReal16 = 2,
    kComplex32 = 4,
    kComplex64 = 5,
    kComplex16 = 6,
    kInteger8 = 3,
    kComplexInteger8 = 7,     ///< from here on integers, up to
    kComplexUnsigned32 = 13,  ///< this
    kRealB16 = 14,
    kInteger4 = 16,           ///< as above, up to
    kComplexUnsigned64 = 27,  ///< this
    kRealE4M3 = 28,
    kRealE5M2 = 29,
};

/// Of a cudaDataType.
LibraryCall::Elements elements_of(int type) noexcept;

}  // namespace numsan
