// What of NCCL's C interface (2.28, nccl.h) is used. Written down here, as numsan is built where there is no NCCL;
// tests/fakes/nccl/layout_check.cpp compares it with the library's own header.
#pragma once

#include <cstddef>

namespace numsan::nccl {

/// Of a communicator that does not block other statuses say that another thread goes on: its kernels say nothing.
inline constexpr int kSuccess = 0;

/// ncclDataType_t; what is less than the first is an integer.
enum DataType : int {
    kFloat16 = 6,
    kFloat32 = 7,
    kFloat64 = 8,
    kBFloat16 = 9,
    kFloat8E4M3 = 10,
    kFloat8E5M2 = 11,
};

/// ncclRedOp_t; what is more than the last one was made by the program.
enum Reduction : int { kSum = 0, kAverage = 4 };

// Forms of calls, for nccl_calls.def.
using Reducing = int(const void* send, void* receive, size_t count, int type, int reduction, void* communicator,
                     void* stream);
using ReducingToRoot = int(const void* send, void* receive, size_t count, int type, int reduction, int root,
                           void* communicator, void* stream);
using Exchanging = int(const void* send, void* receive, size_t count, int type, void* communicator, void* stream);
using WithRoot = int(const void* send, void* receive, size_t count, int type, int root, void* communicator,
                     void* stream);
using InPlace = int(void* buffer, size_t count, int type, int root, void* communicator, void* stream);
using Sending = int(const void* buffer, size_t count, int type, int peer, void* communicator, void* stream);
using Receiving = int(void* buffer, size_t count, int type, int peer, void* communicator, void* stream);

using Group = int();
using GroupSimulateEnd = int(void* result);

/// ncclCommCount, ncclCommUserRank and ncclCommCuDevice.
using OfCommunicator = int(void* communicator, int* value);

}  // namespace numsan::nccl
