// Which storages were computed from parameters: tells a model's values from a batch's when gradients are off.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace numsan {

/// [MT] A direct-mapped memory of recent storages: it may forget, it never invents.
class TouchedSet {
  public:
    bool has(const void* storage) const noexcept {
        return slots_[slot(storage)].load(std::memory_order_relaxed) == storage;
    }
    void set(const void* storage, bool touched) noexcept {
        std::atomic<const void*>& kept = slots_[slot(storage)];
        if (touched) {
            kept.store(storage, std::memory_order_relaxed);
        } else if (kept.load(std::memory_order_relaxed) == storage) {
            kept.store(nullptr, std::memory_order_relaxed);
        }
    }

  private:
    static constexpr size_t kSlots = 8192;
    static size_t slot(const void* storage) {
        const auto bits = reinterpret_cast<uintptr_t>(storage);
        return ((bits >> 4) ^ (bits >> 17)) % kSlots;
    }
    std::atomic<const void*> slots_[kSlots] = {};
};

}  // namespace numsan
