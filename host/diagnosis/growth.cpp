#include "host/diagnosis/growth.h"

#include <algorithm>
#include <cmath>

#include "host/base/thresholds.h"

namespace numsan {
namespace {

/// Of Student's distribution, two-sided 95 %: within 2 % of the tables from 4 degrees of freedom on, the fewest here.
double student(int degrees) { return 1.96 + 2.37 / degrees + 2.8 / degrees / degrees; }

}  // namespace

void Growth::Scale::close() noexcept {
    open = false;
    if (run > 0 && largest <= back(0)) {
        run = 0;
        after_gap = false;
    }
    if (run == 0) start = largest;
    sizes[run % kWindows] = largest;
    ++run;
}

void Growth::Scale::add(int64_t now, double size, bool ends) noexcept {
    if (now != window) {
        if (open) close();
        if (now != window + 1) {
            run = 0;
            after_gap = true;
        }
        window = now;
        largest = static_cast<float>(size);
        open = true;
    } else {
        largest = std::max(largest, static_cast<float>(size));
    }
    if (ends && open) close();
}

bool Growth::add(int64_t step, double size) noexcept {
    bool grows = false;
    step_ = step;
    for (int i = 0; i < kScales; ++i) {
        const int64_t shift = int64_t(2) * i;
        const int64_t last = (int64_t(1) << shift) - 1;
        scales_[i].add(step >> shift, size, (step & last) == last);
        grows = grows || scales_[i].run >= kGrowingWindows;
    }
    return grows;
}

/// Least squares over the last windows; the rate of the later half of them says whether growth slows down.
std::optional<Forecast> Growth::Scale::forecast(double end, double window_steps) const noexcept {
    if (run < kGrowingWindows) return {};
    const int count = std::min<int>(run, kWindows);
    const double now = back(0);
    const double whole = (now - start) / (run - 1);
    // Of a run that comes from below what is watched it is not known where it began.
    const bool from_below = after_gap && start - whole < kWatchedRange * end;
    const double from = from_below ? 0 : std::max<double>(start, 0);
    if (now - from < kCoveredRange * (end - from)) return {};
    double mean = 0;
    for (int i = 0; i < count; ++i) mean += back(i) / count;
    double covariance = 0, variance = 0;
    for (int i = 0; i < count; ++i) {
        const double x = (count - 1) / 2.0 - i;
        covariance += x * (back(i) - mean);
        variance += x * x;
    }
    const double slope = covariance / variance;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
        const double residual = back(i) - mean - slope * ((count - 1) / 2.0 - i);
        squares += residual * residual;
    }
    const double error = student(count - 2) * std::sqrt(squares / (count - 2) / variance);
    const int half = (count - 1) / 2;
    const double late = (now - back(half)) / half;
    const double early = (back(half) - back(count - 1)) / (count - 1 - half);
    if (late < kSteadyGrowth * std::max(early, whole)) return {};
    const double rate = std::max(slope, late);
    const double slowest = std::min(slope - error, late);
    const double fastest = std::max({slope + error, late, 2 * late - early});
    const double steps = (end - now) / rate * window_steps;
    if (!(slowest > 0) || rate > 2 * slowest || steps > kWarningHorizon) return {};
    Forecast made;
    made.steps = steps;
    made.least = (end - now) / fastest * window_steps;
    made.most = (end - now) / slowest * window_steps;
    made.rate = rate / window_steps;
    made.seen = static_cast<int64_t>(run * window_steps);
    return made;
}

std::optional<Forecast> Growth::forecast(double end) const noexcept {
    for (int i = 0; i < kScales; ++i) {
        auto made = scales_[i].forecast(end, static_cast<double>(int64_t(1) << 2 * i));
        if (!made) continue;
        const auto since = static_cast<double>(step_ - scales_[i].last_step(int64_t(2) * i));
        for (double* steps : {&made->steps, &made->least, &made->most}) *steps = std::max(*steps - since, 0.0);
        return made;
    }
    return {};
}

}  // namespace numsan
