// Clocks: the host's, and the device's by events around work that is in the stream before the first of it runs.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/gpu/probe/resources.h"

namespace numsan::gpu::probe {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

inline double nanoseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}
inline double seconds_since(Clock::time_point begin) { return nanoseconds_since(begin) * 1e-9; }

double median(std::vector<double> values);

/// {median, low, high, turns}: median and quartiles.
Json spread(std::vector<double> values);

/// A number, or the median of a spread, for a line of text: "3.14", or "?" where there is none.
std::string brief(const Json& number);

/// A stream that stands still until released, so that what it is given meanwhile runs back to back. It goes on by
/// itself after a while, for tools that make every launch wait.
class Pause {
  public:
    explicit Pause(CUstream stream);
    ~Pause() { release(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    void release();

    /// Pauses that ended by themselves, since the process began.
    static int run_out();

  private:
    struct Shared;
    Shared* shared_;
};

/// Launches that a driver surely takes while the first of them waits.
inline constexpr int kTrain = 64;

/// Device time of `work(i)` for i in [0, count), in microseconds, and before it `prepare()`, which is not timed.
/// `count` calls put no more than kTrain things in the stream, or a few times that.
template <class Prepare, class Work>
double device_microseconds(CUstream stream, int count, Prepare prepare, Work work) {
    Event begin, end;
    {
        const Pause pause(stream);
        prepare();
        begin.record(stream);
        for (int i = 0; i < count; ++i) work(i);
        end.record(stream);
    }
    end.synchronize();
    return end.since(begin);
}
template <class Work>
double device_microseconds(CUstream stream, int count, Work work) {
    return device_microseconds(
        stream, count, [] {}, work);
}

}  // namespace numsan::gpu::probe
