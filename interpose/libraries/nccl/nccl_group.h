// Calls between ncclGroupStart and ncclGroupEnd, which the library makes at the end, all at once.
#pragma once

#include <memory>
#include <vector>

#include "host/kernels/library_call.h"

namespace numsan::nccl {

/// Of the calling thread: groups are a thread's own.
class OpenGroup {
  public:
    using Calls = std::vector<LibraryCall>;
    /// Of one group; what comes after them is not looked at.
    static constexpr size_t kMost = 1024;

    static bool is_open() noexcept;
    /// Another one within the group is part of it.
    static void begin() noexcept;
    /// False: one within another ended.
    static bool end() noexcept;
    /// A call that the library will make.
    static void add(const LibraryCall& call) noexcept;
    /// What it will make now; null: nothing. The last one says where there were too many.
    static std::unique_ptr<Calls> take() noexcept;
};

}  // namespace numsan::nccl
