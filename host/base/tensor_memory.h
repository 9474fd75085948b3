// How single elements of tensors in the host's memory are read: from where they lie, or from what was recorded of them.
#pragma once

#include <cstddef>
#include <cstring>

namespace numsan {

using LoadElement = void (*)(const void* at, void* into, size_t bytes);

/// Null: from memory. Set before the first event, for the whole process.
inline constinit LoadElement load_element_by = nullptr;

inline void load_element(const void* at, void* into, size_t bytes) {
    if (load_element_by != nullptr) [[unlikely]]
        return load_element_by(at, into, bytes);
    std::memcpy(into, at, bytes);
}

}  // namespace numsan
