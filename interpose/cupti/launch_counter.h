// How often each kernel was launched, by name.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace numsan {

/// Of fixed size, without locks: count() allocates nothing and makes no system call. [MT]
class LaunchCounter {
  public:
    static constexpr size_t kSlots = 512;       ///< names; launches of further kernels are counted together
    static constexpr size_t kNameBytes = 2048;  ///< of a name, its end included; the rest of a longer one is left out

    constexpr LaunchCounter() = default;

    /// `name` is copied; null is a launch without a name. The number of the name, -1 where it found no slot.
    int count(const char* name) noexcept;
    /// By the number that count() returned on this thread or on one that it is ordered after; as the linker knows it.
    /// Empty without one.
    std::string name(int number) const;

    /// Launches by name, as the linker knows it. Names that found no slot: "other kernels". Throws std::bad_alloc.
    std::map<std::string, int64_t> launches() const;
    int64_t total() const noexcept { return total_.load(std::memory_order_relaxed); }

    /// In a forked child: what was launched was the parent's. No other thread may count.
    void clear() noexcept;

  private:
    struct Slot {
        std::atomic<uint64_t> key{0};  ///< hash of the whole name, 0: free
        std::atomic<int64_t> count{0};
        std::atomic<bool> named{false};
        char name[kNameBytes] = {};
    };
    static constexpr size_t kProbes = 32;

    Slot slots_[kSlots];
    std::atomic<int64_t> others_{0};
    std::atomic<int64_t> total_{0};
};

}  // namespace numsan
