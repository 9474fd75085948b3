// Whether what numsan writes down of cuFFT is what the toolkit's headers say. Nothing here runs.
#include <cufftXt.h>

#include "interpose/libraries/cufft/cufft_abi.h"
#include "tests/fakes/layout_check.h"

namespace abi = numsan::cufft;
using layout_check::Same;

#define NUMSAN_CUFFT_EXEC(function, form, ours) static_assert(Same<abi::form, decltype(cufft##function)>::check());
#define NUMSAN_CUFFT_PLAN(function, form, ours) static_assert(Same<abi::form, decltype(cufft##function)>::check());
#include "interpose/libraries/cufft/cufft_calls.def"
#undef NUMSAN_CUFFT_EXEC
#undef NUMSAN_CUFFT_PLAN

#define SAME(ours, theirs) static_assert(static_cast<int>(abi::ours) == static_cast<int>(theirs))
SAME(kSuccess, CUFFT_SUCCESS);
SAME(kComplexToComplex, CUFFT_C2C);
SAME(kRealToComplex, CUFFT_R2C);
SAME(kComplexToReal, CUFFT_C2R);
SAME(kDoubleComplexToDoubleComplex, CUFFT_Z2Z);
SAME(kDoubleToDoubleComplex, CUFFT_D2Z);
SAME(kDoubleComplexToDouble, CUFFT_Z2D);
