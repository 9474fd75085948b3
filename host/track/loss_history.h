// The last values that backward() started from: distinguishes an overflow by divergence from a sudden one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "host/base/thresholds.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class LossHistory {
  public:
    void add(double value) {
        keep(value);
        started_ = true;
    }

    /// Of a loss that the program tells at the end of a step: it counts where no backward pass has started since the
    /// last one, whose value this is.
    void tell(double value) {
        if (!std::exchange(started_, false) && std::isfinite(value)) keep(value);
    }

    /// How many times larger than the smallest kept the last one is, when the magnitude has grown in each of the last
    /// three steps and by kDivergedGrowth or more; else 0.
    double divergence() const {
        const size_t kept = std::min(count_, kKept);
        if (kept < 4) return 0;
        double smallest = at(0);
        for (size_t back = 0; back < kept; ++back) smallest = std::min(smallest, at(back));
        const double growth = at(0) / std::max(smallest, 1e-30);
        return at(0) > at(1) && at(1) > at(2) && growth >= kDivergedGrowth ? growth : 0;
    }

    /// Of the last loss, where it diverges: a target that it is not defined for, 0 where all are in order.
    void set_wrong_target(double target) { wrong_target_ = target; }
    double wrong_target() const { return wrong_target_; }

  private:
    static constexpr size_t kKept = 32;
    void keep(double value) { values_[count_++ % kKept] = std::fabs(value); }
    double at(size_t back) const { return values_[(count_ - 1 - back) % kKept]; }

    double values_[kKept] = {};
    size_t count_ = 0;
    double wrong_target_ = 0;
    bool started_ = false;
};

}  // namespace numsan
