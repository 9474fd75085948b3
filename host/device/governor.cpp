#include "host/device/governor.h"

#include <time.h>

#include <algorithm>
#include <utility>

namespace numsan {

namespace {

constexpr int64_t kNoMoreSteps = 8;         ///< times the last step, from when on none is expected
constexpr int64_t kLeastRound = 1'000'000;  ///< nanoseconds: the next one may count for twice as much
constexpr double kNewest = 0.25;            ///< weight of the last round in what an op costs
constexpr int kRoundsKept = 64;
constexpr uint64_t kScatter = 0x9e3779b97f4a7c15;  ///< multiples of it are spread evenly

int64_t read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

int64_t Governor::now() { return read(CLOCK_MONOTONIC); }
int64_t Governor::thread_time() { return read(CLOCK_THREAD_CPUTIME_ID); }

Governor::Governor(const Budget& budget, Clock clock)
    : budget_(budget),
      clock_(clock),
      left_(budget.credit),
      opening_(budget.credit > 0),
      began_(clock()),
      step_began_(began_) {}

Governor::Window Governor::window(int64_t step) noexcept {
    if (budget_.unlimited) return Window::Open;
    uint32_t op = ops_.fetch_add(1, std::memory_order_relaxed);
    const auto is_new = [&] { return step > step_.load(std::memory_order_relaxed); };
    if ((is_new() || op % kOpsPerLook == 0) && !deciding_.exchange(true, std::memory_order_acquire)) {
        const int64_t now = clock_();
        const int64_t longest = step == 0 ? kRoundNanoseconds : std::max(kRoundNanoseconds, kNoMoreSteps * round_);
        if (is_new() || now - began_ >= longest) {  // another thread may have begun it
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
    if (what == Spent::Anyhow) anyhow_.fetch_add(nanoseconds, std::memory_order_relaxed);
    if (what == Spent::InWindow) in_window_.fetch_add(nanoseconds, std::memory_order_relaxed);
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
    const bool new_step = step > step_.load(std::memory_order_relaxed);
    const int64_t most = new_step ? 2 * round_ : std::max(2 * round_, kRoundNanoseconds);
    const int64_t length = std::clamp(now - began_, kLeastRound, most);
    const auto earned = static_cast<int64_t>(budget_.share * static_cast<double>(length));
    const int64_t left = left_.load(std::memory_order_relaxed);
    const bool opening = opening_.load(std::memory_order_relaxed);
    left_.fetch_add(opening ? earned : earned - std::max<int64_t>(left, 0), std::memory_order_relaxed);
    expected_anyhow_.store(anyhow_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
    place_window(ops_.exchange(1, std::memory_order_relaxed) - 1, opening);  // this op is the new round's
    began_ = now;
    if (!new_step) return;
    round_ = std::clamp(now - step_began_, kLeastRound, 2 * round_);
    step_began_ = now;
    step_.store(step, std::memory_order_relaxed);
}

/// `ops`: of the last round. What an op costs is averaged, so that a window may end too early: then it goes on there.
/// Rounds may be of different lengths, as of two models that take turns: the longest of the last ones counts. Where one
/// is likely to end before its window opens, it has in half of the cases another window, nearer to its start.
void Governor::place_window(uint32_t ops, bool opening) noexcept {
    const uint32_t open_ops = open_ops_.exchange(0, std::memory_order_relaxed);
    const int64_t spent = in_window_.exchange(0, std::memory_order_relaxed);
    if (open_ops != 0) {
        const double each = static_cast<double>(spent) / open_ops;
        op_cost_ = op_cost_ == 0 ? each : op_cost_ + kNewest * (each - op_cost_);
    }
    if (ops >= longest_ || ++since_longest_ == kRoundsKept) {
        longest_ = ops;
        since_longest_ = 0;
    }
    const uint32_t opened_at = opens_at_.load(std::memory_order_relaxed);
    const uint32_t read_to = std::max(read_to_.exchange(0, std::memory_order_relaxed), opened_at);
    const uint32_t start_read_to = start_read_to_.exchange(0, std::memory_order_relaxed);
    uint32_t next = opening ? 0 : read_to < longest_ ? read_to : start_read_to;
    if (is_near_) {
        near_ = read_to < ops ? read_to : start_read_to;
        next = far_;
    }
    is_near_ = next >= ops && next != 0 && (++given_up_ * kScatter >> 63) != 0;
    if (is_near_) far_ = std::exchange(next, near_ < ops ? near_ : 0);
    const uint32_t end = is_near_ ? ops : longest_;
    opens_at_.store(next, std::memory_order_relaxed);
    needed_.store(static_cast<int64_t>(op_cost_ * (end - std::min(next, end))), std::memory_order_relaxed);
}

}  // namespace numsan
