// What of cuFFT's C interface (12.0, cufft.h and cufftXt.h) is used. Written down here, as numsan is built where there
// is no toolkit; tests/fakes/cufft/layout_check.cpp compares it with the toolkit's own headers.
#pragma once

#include <cstddef>

namespace numsan::cufft {

inline constexpr int kSuccess = 0;

/// cufftType
enum Type : int {
    kComplexToComplex = 0x29,
    kRealToComplex = 0x2a,
    kComplexToReal = 0x2c,
    kDoubleComplexToDoubleComplex = 0x69,
    kDoubleToDoubleComplex = 0x6a,
    kDoubleComplexToDouble = 0x6c,
};

// Forms of calls, for cufft_calls.def.
using Exec = int(int plan, void* in, void* out);
using ExecWithDirection = int(int plan, void* in, void* out, int direction);

using Plan1d = int(int* plan, int x, int type, int batch);
using Plan2d = int(int* plan, int x, int y, int type);
using Plan3d = int(int* plan, int x, int y, int z, int type);
using PlanMany = int(int* plan, int rank, int* n, int* in_embed, int in_stride, int in_distance, int* out_embed,
                     int out_stride, int out_distance, int type, int batch);
using MakePlan1d = int(int plan, int x, int type, int batch, size_t* work_bytes);
using MakePlan2d = int(int plan, int x, int y, int type, size_t* work_bytes);
using MakePlan3d = int(int plan, int x, int y, int z, int type, size_t* work_bytes);
template <class Int>
using MakePlanMany = int(int plan, int rank, Int* n, Int* in_embed, Int in_stride, Int in_distance, Int* out_embed,
                         Int out_stride, Int out_distance, int type, Int batch, size_t* work_bytes);
using XtMakePlanMany = int(int plan, int rank, long long* n, long long* in_embed, long long in_stride,
                           long long in_distance, int in_type, long long* out_embed, long long out_stride,
                           long long out_distance, int out_type, long long batch, size_t* work_bytes,
                           int execution_type);
using SetStream = int(int plan, void* stream);
using SetWorkArea = int(int plan, void* area);
using SetJitCallback = int(int plan, const char* name, const void* fatbin, size_t fatbin_bytes, int type,
                           void** caller_info);
using Destroy = int(int plan);

}  // namespace numsan::cufft
