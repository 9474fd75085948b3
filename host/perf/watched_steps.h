// The steps of a training loop that are looked at, and how long they took.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/perf/last_steps.h"

namespace numsan {

/// The first steps are left out, since they allocate and compile; then 16 are looked at one after the other, and later
/// one in 32. Steps end on one thread, the training thread; what others ask is atomic.
class WatchedSteps {
  public:
    static constexpr int64_t kLeftOut = 2;
    static constexpr int64_t kAll = 16;  ///< from kLeftOut on

    /// Whether ops are looked at now. Any thread.
    bool looking() const noexcept { return looking_.load(std::memory_order_relaxed); }
    /// Steps that were looked at to their end: the number of the one that goes on. Any thread.
    int64_t looked() const noexcept { return looked_.load(std::memory_order_relaxed); }

    /// A step is over at `now`; of all time so far `own` was numsan's.
    void end(int64_t now, int64_t own) noexcept {
        if (looking()) {
            const int64_t step = looked();
            ns_.add(step, now - began_ - (own - own_at_begin_));
            looked_.store(step + 1, std::memory_order_relaxed);
        }
        ++ended_;
        began_ = now;
        own_at_begin_ = own;
        looking_.store(wanted(ended_), std::memory_order_relaxed);
    }
    void stop() noexcept { looking_.store(false, std::memory_order_relaxed); }
    /// From here on as at the start. No other thread is there.
    void begin_again() noexcept {
        stop();
        looked_.store(0, std::memory_order_relaxed);
        ns_.clear();
        ended_ = began_ = own_at_begin_ = 0;
    }

    /// The median length, in ns, of the last steps that were looked at. Any thread.
    int64_t median_ns() const noexcept { return ns_.median(looked()); }

  private:
    static bool wanted(int64_t step) noexcept {
        if (step < kLeftOut + kAll) return step >= kLeftOut;
        return (static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15u) >> 59 == 0;  // not every 32nd: loops have periods
    }
    std::atomic<bool> looking_{false};
    std::atomic<int64_t> looked_{0};
    LastSteps ns_;
    int64_t ended_ = 0;
    int64_t began_ = 0;
    int64_t own_at_begin_ = 0;
};

}  // namespace numsan
