// Time of the processor that the calling thread has taken.
#pragma once

#include <time.h>

#include <chrono>

namespace numsan {

/// A std::chrono clock. While another program has the processor it stands still, so what is found within a time does
/// not depend on how busy the machine is.
struct ThreadClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<ThreadClock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return time_point(std::chrono::seconds(time.tv_sec) + duration(time.tv_nsec));
    }
};

}  // namespace numsan
