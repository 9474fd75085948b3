// Keeps what looking at a device's tensors costs within its share of the program's time.
#pragma once

#include <atomic>
#include <cstdint>

namespace numsan {

/// What passes earns a share of its time, and each scan takes what it costs. A round is a step of the optimizer, or
/// some time where none ends: kRoundNanoseconds, or eight times the last step if that is more. In each round one window
/// opens, at the op after the last one of the window before, and closes when what the round before has earned is spent;
/// what it will not need is spent at the round's start. So but for the last scan in it a round costs its share and no
/// more, whatever looking at all of it would cost, and every op has its turn. [MT] No lock, no allocation.
class Governor {
  public:
    /// Where no optimizer has stepped, as in inference.
    static constexpr int64_t kRoundNanoseconds = 100'000'000;

    struct Budget {
        double share;    ///< of the time that passes, 0 to 1
        int64_t credit;  ///< nanoseconds of scanning that are paid for at the start
        bool unlimited;
    };
    using Clock = int64_t (*)();  ///< nanoseconds, steady

    explicit Governor(const Budget& budget, Clock clock = &now);

    enum class Window : uint8_t {
        Opening,  ///< paid for by the credit of the start
        Open,     ///< paid for
        Closed,   ///< nothing is to be spent that can be left out
    };
    /// What an op of step `step` meets. To be asked once for each.
    Window window(int64_t step) noexcept;

    enum class Spent : uint8_t {
        InWindow,  ///< for an op that met an open window
        Anyhow,    ///< for what is looked at in each round
        Once,      ///< for what an alarm has read, or a capture
    };
    /// A scan was launched.
    void spend(int64_t nanoseconds, Spent what) noexcept;

    static int64_t now();
    /// Nanoseconds that the calling thread has worked: without those in which it waited for a processor.
    static int64_t thread_time();

  private:
    static constexpr uint32_t kOpsPerLook = 256;  ///< at the clock, within a step

    /// Without what the rest of the round is expected to take anyhow.
    int64_t available() const noexcept;
    void begin_round(int64_t step, int64_t now) noexcept;
    void place_window(uint32_t ops, bool opening) noexcept;

    const Budget budget_;
    const Clock clock_;
    std::atomic<int64_t> left_;  ///< to be spent in this round; below zero: owed
    std::atomic<int64_t> anyhow_{0}, expected_anyhow_{0};
    std::atomic<uint32_t> ops_{0};       ///< of this round
    std::atomic<uint32_t> open_ops_{0};  ///< of them
    std::atomic<int64_t> in_window_{0};  ///< spent on those
    std::atomic<uint32_t> opens_at_{0};  ///< the first op of the window
    std::atomic<uint32_t> read_to_{0};   ///< the op after the last that met it open; 0: none has
    /// What the window will not need is spent at the round's start, where the next one would open.
    std::atomic<int64_t> needed_{0};
    std::atomic<uint32_t> start_read_to_{0};
    std::atomic<int64_t> step_{0};
    std::atomic<bool> opening_;
    std::atomic<bool> deciding_{false};  ///< guards what is below
    int64_t began_, step_began_;
    int64_t round_ = kRoundNanoseconds / 2;  ///< what the last step counted for
    double op_cost_ = 0;                     ///< of an op that met it open, on average
    uint32_t longest_ = 0;                   ///< ops of the longest of the last rounds
    int since_longest_ = 0;
    uint32_t far_ = 0, near_ = 0;  ///< where the window of long rounds goes on, and that of the others
    bool is_near_ = false;         ///< this round's is the latter
    uint64_t given_up_ = 0;
};

}  // namespace numsan
