// Keeps what looking at a device's tensors costs within its share of the program's time.
#pragma once

#include <atomic>
#include <cstdint>

namespace numsan {

/// Whole rounds are looked at, as long as they can be paid for: what passes earns a share of its time, and each scan
/// takes what it is estimated to cost. A round is a step of the optimizer, or kRoundNanoseconds where none ends. [MT]
/// No lock, no allocation.
class Governor {
  public:
    /// Where no optimizer steps, as in inference.
    static constexpr int64_t kRoundNanoseconds = 100'000'000;
    /// What is earned and not spent is kept for this long a time of scanning at most, or for one round.
    static constexpr int64_t kMostKept = 100'000'000;

    struct Budget {
        double share;    ///< of the time that passes, 0 to 1
        int64_t credit;  ///< nanoseconds of scanning that are paid for at the start
        bool unlimited;
    };
    using Clock = int64_t (*)();  ///< nanoseconds, steady

    explicit Governor(const Budget& budget, Clock clock = &now);

    enum class Round : uint8_t {
        Opening,  ///< paid for by the credit of the start
        Whole,    ///< paid for
        Lean,     ///< nothing is to be spent that can be left out
    };
    /// What the round is that this moment of step `step` belongs to.
    Round round(int64_t step) noexcept;

    /// A scan was launched.
    void spend(int64_t nanoseconds) noexcept { spent_.fetch_add(nanoseconds, std::memory_order_relaxed); }

    /// What a launch over so many bytes takes: of the program's thread or of the device, whichever counts.
    static int64_t cost(int64_t launches, int64_t bytes) noexcept {
        return launches * kLaunchNanoseconds + bytes / kBytesPerNanosecond;
    }

    static int64_t now();
    /// Nanoseconds that the calling thread has worked: without those in which it waited for a processor.
    static int64_t thread_time();

  private:
    /// A launch from the host took 1 to 3 us in published measurements.
    static constexpr int64_t kLaunchNanoseconds = 2500;
    /// Reads by a device of the A100's class; a faster one is charged too much.
    static constexpr int64_t kBytesPerNanosecond = 1500;
    static constexpr uint32_t kCallsPerLook = 256;  ///< at the clock, within a step

    void begin_round(int64_t step, int64_t now) noexcept;

    const Budget budget_;
    const Clock clock_;
    std::atomic<int64_t> spent_{0};
    std::atomic<uint32_t> calls_{0};
    std::atomic<int64_t> step_{0};
    std::atomic<Round> round_{Round::Opening};
    std::atomic<bool> deciding_{false};  ///< guards what is below
    int64_t began_;
    int64_t kept_;
    int64_t last_whole_ = 0;  ///< what the last round took that was looked at as a whole
};

}  // namespace numsan
