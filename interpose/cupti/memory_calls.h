// Calls of the driver's for memory of devices, as CUPTI shows them.
#pragma once

#include <cstdint>
#include <optional>

namespace numsan::cupti {

/// What a call was asked to do, and has done.
struct MemoryCall {
    enum class What : uint8_t { Allocate, Free, Copy, Set, Other };

    What what;
    uint64_t address = 0;  ///< what was allocated, freed or set, or where it was copied to
    uint64_t from = 0;     ///< of a copy: an address of the device or the host
    int64_t bytes = 0;     ///< of what was allocated or copied
    void* stream = nullptr;
    bool managed = false;  ///< of what was allocated: the host may read and write it, too
};

/// Numbers of the calls, in the order of memory_callbacks.def.
extern const uint32_t kMemoryCallbacks[];
extern const int kMemoryCallbackCount;

/// The call with this number frees memory. [MT]
bool is_free(uint32_t id) noexcept;
/// The call with this number, once it was made, or before it frees; none for any other. Allocates nothing. [MT]
std::optional<MemoryCall> memory_call(uint32_t id, const void* parameters) noexcept;

}  // namespace numsan::cupti
