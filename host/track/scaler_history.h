// How a dynamic loss scale fares: steps skipped in a row, and what it has come down to.
#pragma once

#include <cstdint>

#include "host/base/thresholds.h"

namespace numsan {

/// A scale that starts too high is halved at each step until gradients fit, which is no fault. Two things show that
/// halving does not help: values that no scale changes, skipped again and again; and a scale below 1, with which
/// gradients are smaller than without a scaler. Not thread-safe: the verdict's lock protects it.
class ScalerHistory {
  public:
    /// The scaler looked at gradients, and `bad` ones among them.
    void looked(bool bad) {
        seen_ = true;
        bad_ = bad_ || bad;
    }
    bool bad() const { return bad_; }

    /// The scaler has set its scale for the next step; negative: it is not known to what. `skipped`: this step was.
    void updated(bool skipped, double scale) {
        seen_ = true;
        bad_ = false;
        scale_ = scale;
        skips_ = skipped ? skips_ + 1 : 0;
        skipped_ += skipped ? 1 : 0;
        ++steps_;
    }

    bool seen() const { return seen_; }
    int64_t skips() const { return skips_; }      ///< in a row, up to now
    int64_t skipped() const { return skipped_; }  ///< of all steps()
    int64_t steps() const { return steps_; }
    double scale() const { return scale_; }

    bool is_stuck() const { return skips_ >= kStuckSkips; }
    /// Below 1 a scale still finds its place where losses are sums; not where gradients would have to be this large.
    bool is_used_up() const { return skips_ >= kFewSkips && scale_ >= 0 && scale_ < 1.0 / 1024; }
    bool never_stepped() const { return skipped_ >= kFewSkips && skipped_ == steps_; }

  private:
    bool seen_ = false;
    bool bad_ = false;
    int64_t skips_ = 0;
    int64_t skipped_ = 0;
    int64_t steps_ = 0;
    double scale_ = -1;
};

}  // namespace numsan
