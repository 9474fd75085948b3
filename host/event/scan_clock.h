// How long scanning took. Two looks at a clock cost more than a small tensor, so few scans are timed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "host/base/ids.h"

namespace numsan {

/// [MT] Large outputs are timed one by one; of the other scans one op of 64 stands for all.
class ScanClock {
  public:
    static constexpr int64_t kLargeBytes = 256 << 10;

    /// Whether op number `seq` is one of those that are timed. Not every 64th: loops have periods.
    static bool samples(OpSeq seq) noexcept {
        return (static_cast<uint64_t>(number(seq)) * 0x9E3779B97F4A7C15u) >> (64 - kShift) == 0;
    }

    static int64_t now() noexcept {
        const auto time = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    }

    void large(int64_t ns) noexcept { add(ns); }
    /// What all other outputs of one sampled op took. No scan takes a microsecond an output and a nanosecond a byte:
    /// what is above was another thread's, and would count 64 times.
    void sampled(int64_t ns, int64_t outputs, int64_t bytes) noexcept {
        const int64_t most = 1000 * outputs + bytes;
        add((ns < look_ns_ ? 0 : ns - look_ns_ < most ? ns - look_ns_ : most) << kShift);
    }

    /// Summed over threads.
    double seconds() const noexcept { return 1e-9 * static_cast<double>(ns_.load(std::memory_order_relaxed)); }

  private:
    static constexpr int kShift = 6;

    void add(int64_t ns) noexcept { ns_.fetch_add(ns, std::memory_order_relaxed); }

    /// A look at the clock: as much as a small scan, and counted 64 times.
    static int64_t shortest_look() noexcept {
        int64_t shortest = INT64_MAX;
        for (int i = 0; i < 16; ++i) {
            const int64_t before = now();
            const int64_t took = now() - before;
            if (took < shortest) shortest = took;
        }
        return shortest;
    }

    const int64_t look_ns_ = shortest_look();
    std::atomic<int64_t> ns_{0};
};

}  // namespace numsan
