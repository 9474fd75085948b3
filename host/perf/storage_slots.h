// A table of what is known of storages, of constant size: the next storage of a slot takes the place of the one before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace numsan {

/// Whoever reads an entry looks whether it is of that storage.
template <class Entry, size_t kSlots>
class StorageSlots {
  public:
    Entry& operator[](const void* storage) noexcept { return entries_[slot(storage)]; }
    const Entry& operator[](const void* storage) const noexcept { return entries_[slot(storage)]; }

  private:
    /// Allocations lie 16 bytes apart or more.
    static size_t slot(const void* storage) noexcept { return (reinterpret_cast<uintptr_t>(storage) >> 4) % kSlots; }

    std::array<Entry, kSlots> entries_{};
};

}  // namespace numsan
