// The end of a time that may be spent.
#pragma once

#include <time.h>

#include <chrono>

namespace numsan {

/// Of the calling thread. It is over once the thread has taken so much CPU time, so that what is found does not depend
/// on how busy the machine is, or once twenty times as much has passed.
class Deadline {
  public:
    using Duration = std::chrono::nanoseconds;

    explicit Deadline(Duration budget) : cpu_(cpu_time() + budget), real_(Clock::now() + kPatience * budget) {}

    bool is_over() const noexcept { return cpu_time() >= cpu_ || Clock::now() >= real_; }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr int kPatience = 20;  ///< set by hand

    static Duration cpu_time() noexcept {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }

    Duration cpu_;
    Clock::time_point real_;
};

}  // namespace numsan
