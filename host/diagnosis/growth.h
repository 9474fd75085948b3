// How a value grows from step to step, in memory that does not grow, and when it leaves its type's range at that rate.
#pragma once

#include <cstdint>
#include <optional>

#include "host/base/value_classes.h"

namespace numsan {

/// Size of a magnitude pattern in binades: 0 for 1, 1 for 2. Between powers of two it is linear in the value, which is
/// less than log2 by up to 0.09, and costs one multiplication.
constexpr double binades(uint64_t magnitude, const DTypeInfo& type) {
    return static_cast<double>(magnitude) / static_cast<double>(type.mantissa_mask() + 1) - type.bias;
}

/// The pattern of a size in binades.
constexpr uint64_t magnitude_at(double binades, const DTypeInfo& type) {
    return static_cast<uint64_t>((binades + type.bias) * static_cast<double>(type.mantissa_mask() + 1));
}

/// In binades, where the numbers of a type end.
constexpr double end_of_range(const DTypeInfo& type) { return binades(value_classes(type).smallest_nonfinite(), type); }

struct Forecast {
    double steps = 0;  ///< from the last step that was added until the value leaves the range
    double least = 0;  ///< the interval of that
    double most = 0;
    double rate = 0;   ///< binades a step
    int64_t seen = 0;  ///< steps for which it has grown
};

/// Not thread-safe. The largest value of each step, of each 4 and of each 16 steps: noise of single batches hides slow
/// growth from the first, and sudden growth is short in the last.
class Growth {
  public:
    static constexpr int kScales = 3;
    static constexpr int kWindows = 16;  ///< that a fit looks at

    /// The largest magnitude of a step that is over, in binades; steps come in order, and some may be missing, as those
    /// below kWatchedRange do. True: it has grown for so long that a forecast may be asked for.
    bool add(int64_t step, double size) noexcept;

    /// Nothing where it is not sure: the value has grown in each of the last kGrowingWindows windows or more, over
    /// kCoveredRange of the way from 1 (or from where this growth began, if that is known and larger) to `end`, as fast
    /// lately as before, and would be there within kWarningHorizon steps.
    std::optional<Forecast> forecast(double end) const noexcept;

  private:
    struct Scale {
        float sizes[kWindows];  ///< of the last windows of a run, by their number in it
        float start = 0;        ///< of the run's first window
        float largest = 0;      ///< of the window that is open, then of the last one
        int32_t run = 0;        ///< windows on end of which each is larger than the one before
        bool open = false;
        bool after_gap = true;  ///< nothing was added for the window before the run
        int64_t window = -2;

        void add(int64_t now, double size, bool ends) noexcept;
        void close() noexcept;
        int64_t last_step(int64_t shift) const { return ((open ? window : window + 1) << shift) - 1; }
        double back(int windows) const { return sizes[(run - 1 - windows) % kWindows]; }
        std::optional<Forecast> forecast(double end, double window_steps) const noexcept;
    };

    Scale scales_[kScales];
    int64_t step_ = 0;  ///< the last that was added
};

}  // namespace numsan
