// A call of a library whose arguments say what it reads and writes on a device: a product of matrices of cuBLAS's.
#pragma once

#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/dtype.h"

namespace numsan {

/// Valid during the call.
struct LibraryCall {
    static constexpr int kMostBuffers = 8;
    static constexpr int kMostDims = 3;

    /// Elements of a buffer: sizes and strides as a tensor's, outermost first.
    struct Buffer {
        uint64_t address;
        DType dtype;
        bool read, written;
        int32_t ndim;
        int64_t sizes[kMostDims], strides[kMostDims];

        /// Bytes from its first element to the end of its last; 0 of one without elements, or with negative sizes.
        int64_t extent() const noexcept;
    };

    const char* name;  ///< "cublasSgemm", lives for ever
    DeviceQueue queue;
    bool captured = false;  ///< into a graph: it does not run now
    bool complete = true;   ///< false: it may write more than `buffers`
    uint64_t scratch = 0;   ///< memory of the program's that it uses as it likes; 0: none
    int32_t number_count = 0;
    double numbers[2] = {};  ///< that it is given by value: factors
    int count = 0;
    Buffer buffers[kMostBuffers] = {};
    LaunchSpan launches = {};  ///< what it launched, once it was made
};

inline int64_t LibraryCall::Buffer::extent() const noexcept {
    int64_t last = 0;
    for (int32_t d = 0; d < ndim; ++d) {
        if (sizes[d] <= 0 || strides[d] < 0) return 0;
        last += (sizes[d] - 1) * strides[d];
    }
    return (last + 1) * info(dtype).element_bytes();
}

}  // namespace numsan
