// A figure of each of the last steps that were looked at, and their median.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace numsan {

/// Written by one thread, read by any. A median: what happens in a few steps (a checkpoint is written, another program
/// has the processor) is not what steps cost.
class LastSteps {
  public:
    static constexpr int64_t kKept = 16;

    /// `step` does not fall; steps that are left out have 0.
    void add(int64_t step, int64_t more) noexcept {
        int64_t last = last_.load(std::memory_order_relaxed);
        for (last = std::max(last, step - kKept); last < step; ++last)
            slot(last + 1).store(0, std::memory_order_relaxed);
        last_.store(last, std::memory_order_relaxed);
        slot(step).store(slot(step).load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }

    /// Of the kept steps before `end`, or of all where there are fewer.
    int64_t median(int64_t end) const noexcept {
        std::array<int64_t, kKept> values{};
        const int64_t last = last_.load(std::memory_order_relaxed);
        const auto count = static_cast<size_t>(std::clamp<int64_t>(end, 0, kKept));
        for (size_t i = 0; i < count; ++i) {
            const int64_t step = end - 1 - static_cast<int64_t>(i);
            // Of the step that goes on the place is that of the oldest.
            const bool held = step <= last && step > last - kKept;
            values[i] = held ? slots_[static_cast<size_t>(step % kKept)].load(std::memory_order_relaxed) : 0;
        }
        std::sort(values.begin(), values.begin() + count);
        return count == 0 ? 0 : values[count / 2];
    }

    void clear() noexcept { last_.store(-1, std::memory_order_relaxed); }

  private:
    std::atomic<int64_t>& slot(int64_t step) noexcept { return slots_[static_cast<size_t>(step % kKept)]; }

    std::array<std::atomic<int64_t>, kKept> slots_{};
    std::atomic<int64_t> last_{-1};
};

}  // namespace numsan
