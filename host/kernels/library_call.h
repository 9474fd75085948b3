// A call of a library whose arguments say what it reads and writes on a device: a product of matrices of cuBLAS's, a
// Fourier transform of cuFFT's, a sum over ranks of NCCL's.
#pragma once

#include <cstdint>
#include <optional>

#include "host/base/adapter_abi.h"
#include "host/base/dtype.h"

namespace numsan {

/// Valid during the call.
struct LibraryCall {
    static constexpr int kMostBuffers = 12;
    static constexpr int kMostOthers = 6;
    static constexpr int kMostDims = 4;

    /// Elements of a buffer: sizes and strides as a tensor's, outermost first. It has some.
    struct Buffer {
        uint64_t address;
        DType dtype;
        bool read, written;
        int32_t ndim;
        int64_t sizes[kMostDims], strides[kMostDims];

        /// Bytes from its first element to the end of its last; none where they are no number, or a stride is negative.
        std::optional<int64_t> extent() const noexcept;
    };

    /// What a buffer has for elements.
    struct Elements {
        std::optional<DType> dtype;  ///< none: of integers, or of a type that has no row in dtype.def
        bool integers = false;
    };
    /// Adds a buffer that is read or written; null where it is none that can be looked at, which the call then says.
    /// Its sizes and strides are for the caller to set.
    Buffer* add(const void* memory, const Elements& elements, bool read, bool written) noexcept;
    /// The same of `size` elements side by side; none of them is nothing.
    void add(const void* memory, const Elements& elements, int64_t size, bool read, bool written) noexcept;

    /// What is written there is not looked at: integers, a mask, scratch.
    void add_other(const void* memory) noexcept;

    const char* name;  ///< "cublasSgemm", lives for ever
    DeviceQueue queue;
    bool captured = false;         ///< into a graph: it does not run now
    bool complete = true;          ///< false: it may write more than `buffers` and `others`
    bool explained = true;         ///< false: it reads numbers that are not in `buffers`; what is bad may come of those
    bool sends = false;            ///< what it reads goes to other processes or devices, where it matters
    bool receives = false;         ///< what it writes is theirs: a bad value there is nobody's fault here
    const char* unseen = nullptr;  ///< why nothing is known of it, in a user's words; lives for ever; null: it is known
    int32_t number_count = 0;
    double numbers[2] = {};  ///< that it is given by value: factors
    int count = 0;
    Buffer buffers[kMostBuffers] = {};
    int other_count = 0;
    uint64_t others[kMostOthers] = {};
    bool looked_at = false;    ///< before it was made
    LaunchSpan launches = {};  ///< what it launched, once it was made
};

inline std::optional<int64_t> LibraryCall::Buffer::extent() const noexcept {
    int64_t last = 0, bytes = 0;
    for (int32_t d = 0; d < ndim; ++d) {
        int64_t steps = 0;
        if (sizes[d] <= 0 || strides[d] < 0 || __builtin_mul_overflow(sizes[d] - 1, strides[d], &steps) ||
            __builtin_add_overflow(last, steps, &last))
            return std::nullopt;
    }
    const bool fits = !__builtin_add_overflow(last, 1, &last) &&
                      !__builtin_mul_overflow(last, static_cast<int64_t>(info(dtype).element_bytes()), &bytes);
    return fits ? std::optional(bytes) : std::nullopt;
}

inline LibraryCall::Buffer* LibraryCall::add(const void* memory, const Elements& elements, bool read,
                                             bool written) noexcept {
    if (!elements.dtype || memory == nullptr) {
        explained = explained && !(read && !elements.integers);
        complete = complete && !(written && memory == nullptr);
        if (written) add_other(memory);
        return nullptr;
    }
    if (count == kMostBuffers) {
        complete = complete && !written;
        explained = explained && !read;
        return nullptr;
    }
    Buffer& buffer = buffers[count++];
    buffer = {reinterpret_cast<uint64_t>(memory), *elements.dtype, read, written, 0, {}, {}};
    return &buffer;
}

inline void LibraryCall::add(const void* memory, const Elements& elements, int64_t size, bool read,
                             bool written) noexcept {
    Buffer* const buffer = size != 0 ? add(memory, elements, read, written) : nullptr;
    if (buffer == nullptr) return;
    buffer->ndim = 1;
    buffer->sizes[0] = size;
    buffer->strides[0] = 1;
}

inline void LibraryCall::add_other(const void* memory) noexcept {
    if (memory == nullptr) return;
    if (other_count == kMostOthers)
        complete = false;
    else
        others[other_count++] = reinterpret_cast<uint64_t>(memory);
}

}  // namespace numsan
