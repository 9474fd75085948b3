#include "host/device/governor.h"

#include <time.h>

#include <algorithm>

namespace numsan {

namespace {

int64_t read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

int64_t Governor::now() { return read(CLOCK_MONOTONIC); }
int64_t Governor::thread_time() { return read(CLOCK_THREAD_CPUTIME_ID); }

Governor::Governor(const Budget& budget, Clock clock)
    : budget_(budget), clock_(clock), began_(clock()), kept_(budget.credit) {
    if (budget.unlimited)
        round_ = Round::Whole;
    else if (budget.credit <= 0)
        round_ = Round::Lean;
}

Governor::Round Governor::round(int64_t step) noexcept {
    if (budget_.unlimited) return Round::Whole;
    const bool new_step = step != step_.load(std::memory_order_relaxed);
    if ((new_step || calls_.fetch_add(1, std::memory_order_relaxed) % kCallsPerLook == 0) &&
        !deciding_.exchange(true, std::memory_order_acquire)) {
        const int64_t now = clock_();
        if (new_step || (step == 0 && now - began_ >= kRoundNanoseconds)) begin_round(step, now);
        deciding_.store(false, std::memory_order_release);
    }
    return round_.load(std::memory_order_relaxed);
}

void Governor::begin_round(int64_t step, int64_t now) noexcept {
    const int64_t spent = spent_.exchange(0, std::memory_order_relaxed);
    const Round last = round_.load(std::memory_order_relaxed);
    if (last != Round::Lean) last_whole_ = std::max(last == Round::Opening ? last_whole_ : 0, spent);
    const auto earned = static_cast<int64_t>(budget_.share * static_cast<double>(now - began_));
    kept_ = std::min(kept_ + earned - spent, std::max({kMostKept, budget_.credit, last_whole_}));
    began_ = now;
    step_.store(step, std::memory_order_relaxed);
    const bool paid = kept_ > 0 && kept_ >= last_whole_;
    const Round next = !paid ? Round::Lean : last == Round::Opening ? Round::Opening : Round::Whole;
    round_.store(next, std::memory_order_relaxed);
}

}  // namespace numsan
