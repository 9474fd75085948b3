// What scans cost on one device, learned from launches that were timed.
#pragma once

#include <atomic>
#include <cstdint>

namespace numsan::gpu {

/// A line is fitted to the nanoseconds of launches over their bytes, with errors taken relative to what is expected:
/// its ends are what a launch and a byte cost the device. The last launches count most. Two made-up launches, by
/// published figures, hold the line where nothing is measured. What a launch costs the program's thread is not:
/// it also waits there where the device is behind, which costs nothing. [MT] but for learn(). No lock, no allocation.
class ScanCost {
  public:
    /// A launch from the host took 1 to 3 us in published measurements.
    static constexpr double kLaunchNanoseconds = 2500;
    /// Reads by a device of the A100's class.
    static constexpr double kBytesPerNanosecond = 1500;

    /// A launch over so many bytes took the device so long; 0: not known.
    void learn(int64_t bytes, int64_t nanoseconds) noexcept;

    /// Of launches over so many bytes in all; a launch not less than kLaunchNanoseconds, which its thread takes.
    int64_t of(int64_t launches, int64_t bytes) const noexcept;

    double bytes_per_nanosecond() const noexcept { return 1 / byte_.load(std::memory_order_relaxed); }

  private:
    /// Sums over launches of weight, weight x bytes, ...
    struct Sums {
        double one = 0, x = 0, xx = 0, y = 0, xy = 0;
        void add(double bytes, double nanoseconds, double weight) noexcept;
        void fade(double by) noexcept;
    };
    double expected_of(double bytes) const noexcept;  ///< nanoseconds of a launch, on the device
    void fit() noexcept;
    /// No launch moves the line at once: the device may have been busy with something else.
    static double bounded(double nanoseconds, double expected) noexcept;

    Sums sums_;
    std::atomic<double> launch_{kLaunchNanoseconds};  ///< nanoseconds of a launch without bytes
    std::atomic<double> byte_{1 / kBytesPerNanosecond};
};

}  // namespace numsan::gpu
