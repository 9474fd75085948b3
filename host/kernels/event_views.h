// What an event of a launch or a call reads and writes, as tensors.
#pragma once

#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/kernels/device_memory.h"
#include "host/kernels/library_call.h"

namespace numsan {

/// Lives as long as the event does: its views point into it, and those of calls into the call.
struct EventViews {
    static constexpr int32_t kMostBuffers = 16;  ///< read, and as many written; further ones are not looked at

    EventViews() = default;
    EventViews(const EventViews&) = delete;
    EventViews& operator=(const EventViews&) = delete;

    /// Adds the buffer that begins at `address`, up to `end`, where that is nearer than its own end. False: it has no
    /// view, being no memory that is known.
    bool add(const DeviceMemory& memory, uint64_t address, DType dtype, bool is_written, uint64_t end = ~uint64_t(0));
    /// Adds elements that a call says. False: they are in no memory that is known.
    bool add(const DeviceMemory& memory, const LibraryCall::Buffer& given, bool is_written);

    /// What begins at `address` is written.
    bool writes_at(uint64_t address) const;
    /// The views are what the event reads and writes.
    void show_in(OpEvent& event) const;

    TensorView read[kMostBuffers], written[kMostBuffers];
    int32_t reads = 0, writes = 0;
    bool complete = true;  ///< false: something that it may write has no view
    int16_t device = -1;   ///< of all of them; -1: that of the thread's context

  private:
    TensorView& next(uint64_t address, DType dtype, const DeviceMemory::Buffer& buffer, bool is_written);

    int64_t sizes_[2 * kMostBuffers];
};

}  // namespace numsan
