// What calls of NCCL's say of the values that go between ranks, as buffers of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/kernels/library_call.h"

namespace numsan::nccl {

enum Function : int {
#define NUMSAN_NCCL_CALL(function, form, readers, read, writers, written) k##function,
#include "interpose/libraries/nccl/nccl_calls.def"
#undef NUMSAN_NCCL_CALL
    kFunctionCount
};

/// A call as the program makes it.
struct Transfer {
    Function function;
    const void* send;
    void* receive;
    size_t count;
    int type;       ///< ncclDataType_t
    int peer;       ///< the root, or whom it is sent to or comes from; -1: there is none
    int reduction;  ///< ncclRedOp_t; -1: nothing is reduced
    void* stream;
};

/// Of the communicator that it is made with.
struct Member {
    int rank, ranks;
    int device;
};

/// Describes the call. What others put in is theirs: of a sum a rank sees its own share alone.
void describe(LibraryCall& call, const Transfer& transfer, const Member& member) noexcept;

/// Of a ncclDataType_t.
LibraryCall::Elements elements_of(int type) noexcept;

}  // namespace numsan::nccl
