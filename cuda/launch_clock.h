// The host's end of LaunchTime: which launches of a context are timed, and what they say.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/kernel/scan_table.h"

namespace numsan::gpu {

/// The first launches are timed, then one in some: one that is has two more atomic operations and a fence a block.
/// Several threads launch, one takes. No lock, no allocation, no call of the driver.
class LaunchClock {
  public:
    /// Launches that may be timed before one is taken.
    static constexpr uint32_t kTimes = 64;

    /// `host` and `device`: the same kTimes, zero, as the host and the device see them. Before the first launch.
    void use(LaunchTime* host, LaunchTime* device) noexcept {
        host_ = host;
        device_ = device;
    }

    /// Before a launch over so many bytes. True: it is timed, the header says so; where it is not launched after all,
    /// give_up() follows.
    bool begin(ScanHeader& header, int64_t bytes) noexcept {
        const uint32_t launch = launches_.fetch_add(1, std::memory_order_relaxed);
        if (launch >= kAllTimed && launch % kTimedEvery != 0) return false;
        uint32_t number = given_.load(std::memory_order_relaxed);
        do {
            if (number - taken_.load(std::memory_order_acquire) >= kTimes) return false;
        } while (!given_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
        bytes_[number % kTimes].store(bytes, std::memory_order_relaxed);
        header.time = device_ + number % kTimes;
        header.time_number = number;
        return true;
    }
    /// It was not launched after all.
    void give_up(const ScanHeader& header) noexcept {
        LaunchTime& time = host_[header.time_number % kTimes];
        time.began = time.ended = 0;
        std::atomic_ref(time.number_plus_one).store(uint64_t(header.time_number) + 1, std::memory_order_release);
    }

    /// Calls each(bytes, nanoseconds) for those that are over, in the order of begin(); 0 nanoseconds: not known. One
    /// thread at a time.
    template <class Each>
    void take(Each each) noexcept {
        for (uint32_t number = taken_.load(std::memory_order_relaxed);; ++number) {
            if (number == given_.load(std::memory_order_relaxed)) return;
            LaunchTime& time = host_[number % kTimes];
            if (std::atomic_ref(time.number_plus_one).load(std::memory_order_acquire) != uint64_t(number) + 1) return;
            const int64_t bytes = bytes_[number % kTimes].load(std::memory_order_relaxed);
            const int64_t took = time.ended > time.began ? static_cast<int64_t>(time.ended - time.began) : 0;
            taken_.store(number + 1, std::memory_order_release);
            each(bytes, took);
        }
    }

  private:
    static constexpr uint32_t kAllTimed = 64, kTimedEvery = 16;

    LaunchTime* host_ = nullptr;
    LaunchTime* device_ = nullptr;
    std::atomic<uint32_t> launches_{0}, given_{0}, taken_{0};
    std::atomic<int64_t> bytes_[kTimes] = {};
};

}  // namespace numsan::gpu
