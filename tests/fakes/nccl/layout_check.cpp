// Whether what numsan writes down of NCCL is what the library's own header says. Nothing here runs.
#include <nccl.h>

#include "interpose/libraries/nccl/nccl_abi.h"
#include "tests/fakes/layout_check.h"

namespace abi = numsan::nccl;
using layout_check::Same;

#define NUMSAN_NCCL_CALL(function, form, readers, read, writers, written) \
    static_assert(Same<abi::form, decltype(nccl##function)>::check());
#include "interpose/libraries/nccl/nccl_calls.def"
#undef NUMSAN_NCCL_CALL

static_assert(Same<abi::Group, decltype(ncclGroupStart)>::check());
static_assert(Same<abi::Group, decltype(ncclGroupEnd)>::check());
static_assert(Same<abi::GroupSimulateEnd, decltype(ncclGroupSimulateEnd)>::check());
static_assert(Same<abi::OfCommunicator, decltype(ncclCommCount)>::check());
static_assert(Same<abi::OfCommunicator, decltype(ncclCommUserRank)>::check());
static_assert(Same<abi::OfCommunicator, decltype(ncclCommCuDevice)>::check());

#define SAME(ours, theirs) static_assert(static_cast<int>(abi::ours) == static_cast<int>(theirs))
SAME(kSuccess, ncclSuccess);
SAME(kFloat16, ncclFloat16);
SAME(kFloat32, ncclFloat32);
SAME(kFloat64, ncclFloat64);
SAME(kBFloat16, ncclBfloat16);
SAME(kFloat8E4M3, ncclFloat8e4m3);
SAME(kFloat8E5M2, ncclFloat8e5m2);
SAME(kSum, ncclSum);
SAME(kAverage, ncclAvg);
// All that stand before the first type of numbers are integers, and all reductions after the last one are made.
static_assert(ncclInt8 == 0 && ncclUint64 == abi::kFloat16 - 1 && ncclNumTypes == abi::kFloat8E5M2 + 1);
static_assert(ncclNumOps == abi::kAverage + 1);
