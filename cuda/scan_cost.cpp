#include "cuda/scan_cost.h"

#include <algorithm>
#include <cmath>

namespace numsan::gpu {
namespace {

constexpr double kMuchMore = 4;               ///< times what is expected: more is taken for so much
constexpr double kKept = 1 - 1.0 / 64;        ///< of the weight of earlier launches, at each
constexpr double kMadeUpBytes = 64 << 20;     ///< of the second made-up launch
constexpr double kMadeUpWeight = 1.0 / 64;    ///< of a launch that was timed
constexpr double kLeastLaunch = 100;          ///< nanoseconds: errors are relative to it
constexpr double kLeastPerByte = 1.0 / 64e3;  ///< 64 TB/s: caches are faster than memory, but not without end

}  // namespace

void ScanCost::Sums::add(double bytes, double nanoseconds, double weight) noexcept {
    one += weight;
    x += weight * bytes;
    xx += weight * bytes * bytes;
    y += weight * nanoseconds;
    xy += weight * bytes * nanoseconds;
}

void ScanCost::Sums::fade(double by) noexcept {
    for (double* sum : {&one, &x, &xx, &y, &xy}) *sum *= by;
}

double ScanCost::bounded(double nanoseconds, double expected) noexcept {
    return std::clamp(nanoseconds, expected / kMuchMore, expected * kMuchMore);
}

double ScanCost::expected_of(double bytes) const noexcept {
    return launch_.load(std::memory_order_relaxed) + bytes * byte_.load(std::memory_order_relaxed);
}

void ScanCost::learn(int64_t bytes, int64_t nanoseconds) noexcept {
    if (nanoseconds <= 0) return;
    const auto x = static_cast<double>(bytes);
    const double expected = expected_of(x);
    sums_.fade(kKept);
    sums_.add(x, bounded(static_cast<double>(nanoseconds), expected), 1 / (expected * expected));
    fit();
}

void ScanCost::fit() noexcept {
    Sums sums = sums_;
    for (const double bytes : {0.0, kMadeUpBytes}) {
        const double expected = expected_of(bytes);
        sums.add(bytes, kLaunchNanoseconds + bytes / kBytesPerNanosecond, kMadeUpWeight / (expected * expected));
    }
    const double spread = sums.one * sums.xx - sums.x * sums.x;  // of two different sizes at least: above zero
    const double byte = std::max((sums.one * sums.xy - sums.x * sums.y) / spread, kLeastPerByte);
    launch_.store(std::max((sums.y - byte * sums.x) / sums.one, kLeastLaunch), std::memory_order_relaxed);
    byte_.store(byte, std::memory_order_relaxed);
}

int64_t ScanCost::of(int64_t launches, int64_t bytes) const noexcept {
    return std::llround(static_cast<double>(launches) *
                            std::max(launch_.load(std::memory_order_relaxed), kLaunchNanoseconds) +
                        static_cast<double>(bytes) * byte_.load(std::memory_order_relaxed));
}

}  // namespace numsan::gpu
