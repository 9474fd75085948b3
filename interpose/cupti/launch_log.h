// The last launches of kernels: what operators ran on a device.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/base/ids.h"

namespace numsan {

/// One launch as the driver was asked for it.
struct LoggedLaunch {
    const char* call;  ///< a constant of CUPTI's
    uint64_t stream;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t correlation_id;
    uint32_t thread;
    int32_t name;         ///< number of a name of the LaunchCounter; -1: it had no room
    uint64_t number = 0;  ///< of the process's launches that were added, from 1: LaunchLog's to fill in
};

/// A ring of fixed size without locks. add() makes no system call; all that it allocates is a thread's own memory,
/// where that thread has run no op yet. [MT]
class LaunchLog {
  public:
    static constexpr size_t kSlots = 1 << 14;  ///< older launches are gone

    static constexpr size_t kMostOfSpan = 16;  ///< what an op is known by; some launch hundreds

    constexpr LaunchLog() = default;

    /// As the calling thread's. Not kept where another thread is at its slot: one of them is kSlots launches late.
    void add(LoggedLaunch launch) noexcept;

    /// How many were added so far.
    uint64_t count() const noexcept { return next_.load(std::memory_order_relaxed); }
    /// From `first` until now, of the calling thread.
    LaunchSpan since(uint64_t first) const noexcept { return {first, count(), this_thread()}; }

    /// The last kMostOfSpan of a span, oldest first; empty where the ring does not reach back to its beginning. Throws
    /// std::bad_alloc.
    std::vector<LoggedLaunch> of(const LaunchSpan& span) const;

    /// Numbers threads from 1.
    static uint32_t this_thread() noexcept;

  private:
    using Words = std::array<uint64_t, (sizeof(LoggedLaunch) + 7) / 8>;
    static constexpr uint64_t kFree = 0, kBusy = ~uint64_t(0);

    struct Slot {
        std::atomic<uint64_t> number{kFree};  ///< of the launch + 1
        std::array<std::atomic<uint64_t>, Words().size()> words{};
    };

    bool read(uint64_t number, LoggedLaunch& launch) const noexcept;

    std::atomic<uint64_t> next_{0};
    Slot slots_[kSlots];
};

}  // namespace numsan
