#include "host/device/governor.h"

#include <time.h>

#include <algorithm>

namespace numsan {

namespace {

constexpr double kNewest = 0.25;  ///< weight of the last round in what an op costs

int64_t read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

int64_t Governor::now() { return read(CLOCK_MONOTONIC); }
int64_t Governor::thread_time() { return read(CLOCK_THREAD_CPUTIME_ID); }

Governor::Governor(const Budget& budget, Clock clock)
    : budget_(budget), clock_(clock), left_(budget.credit), opening_(budget.credit > 0), began_(clock()) {}

Governor::Window Governor::window(int64_t step) noexcept {
    if (budget_.unlimited) return Window::Open;
    const bool new_step = step != step_.load(std::memory_order_relaxed);
    uint32_t op = ops_.fetch_add(1, std::memory_order_relaxed);
    if ((new_step || op % kOpsPerLook == 0) && !deciding_.exchange(true, std::memory_order_acquire)) {
        const int64_t now = clock_();
        if (new_step || (step == 0 && now - began_ >= kRoundNanoseconds)) {
            begin_round(step, now);
            op = 0;
        }
        deciding_.store(false, std::memory_order_release);
    }
    const bool opening = opening_.load(std::memory_order_relaxed);
    const bool at_start = !opening && op < opens_at_.load(std::memory_order_relaxed);
    if (!opening && available() <= (at_start ? needed_.load(std::memory_order_relaxed) : 0)) return Window::Closed;
    (at_start ? start_read_to_ : read_to_).store(op + 1, std::memory_order_relaxed);
    open_ops_.fetch_add(1, std::memory_order_relaxed);
    return opening ? Window::Opening : Window::Open;
}

void Governor::spend(int64_t nanoseconds, Spent what) noexcept {
    (what == Spent::Anyhow ? anyhow_ : in_window_).fetch_add(nanoseconds, std::memory_order_relaxed);
    if (left_.fetch_sub(nanoseconds, std::memory_order_relaxed) <= nanoseconds)
        opening_.store(false, std::memory_order_relaxed);
}

int64_t Governor::available() const noexcept {
    const int64_t expected = expected_anyhow_.load(std::memory_order_relaxed) - anyhow_.load(std::memory_order_relaxed);
    return left_.load(std::memory_order_relaxed) - std::max<int64_t>(expected, 0);
}

/// What the last round has left over is lost, and what it owes is not: no round costs more than the share of the one
/// before it, but for the last scan in it. Of a round that a pause has made longer only a part counts.
void Governor::begin_round(int64_t step, int64_t now) noexcept {
    round_ = std::min(now - began_, 2 * round_);
    const auto earned = static_cast<int64_t>(budget_.share * static_cast<double>(round_));
    const int64_t left = left_.load(std::memory_order_relaxed);
    const bool opening = opening_.load(std::memory_order_relaxed);
    left_.fetch_add(opening ? earned : earned - std::max<int64_t>(left, 0), std::memory_order_relaxed);
    expected_anyhow_.store(anyhow_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
    place_window(ops_.exchange(1, std::memory_order_relaxed) - 1, opening);  // this op is the new round's
    began_ = now;
    step_.store(step, std::memory_order_relaxed);
}

/// `ops`: of the last round. What an op costs is averaged, so that a window may end too early: then it goes on there.
void Governor::place_window(uint32_t ops, bool opening) noexcept {
    const uint32_t open_ops = open_ops_.exchange(0, std::memory_order_relaxed);
    const int64_t spent = in_window_.exchange(0, std::memory_order_relaxed);
    if (open_ops != 0) {
        const double each = static_cast<double>(spent) / open_ops;
        op_cost_ = op_cost_ == 0 ? each : op_cost_ + kNewest * (each - op_cost_);
    }
    const uint32_t opened_at = opens_at_.load(std::memory_order_relaxed);
    const uint32_t read_to = std::max(read_to_.exchange(0, std::memory_order_relaxed), opened_at);
    const uint32_t start_read_to = start_read_to_.exchange(0, std::memory_order_relaxed);
    const uint32_t next = opening ? 0 : read_to < ops ? read_to : start_read_to;
    opens_at_.store(next, std::memory_order_relaxed);
    needed_.store(static_cast<int64_t>(op_cost_ * (ops - std::min(next, ops))), std::memory_order_relaxed);
}

}  // namespace numsan
