#include "host/device/device_side.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <bit>

namespace numsan {

Governor::Budget DeviceSide::budget_of(const Options& options) {
    constexpr double kSentinelShare = 0.01;
    const bool sentinel = tier_of(options) == Tier::Sentinel;
    return {sentinel ? kSentinelShare : options.budget / 100, static_cast<int64_t>(options.warmup * 1e9),
            !sentinel && (options.budget == 0 || waits(options))};
}

ReplayBudget DeviceSide::replays_of(const Options& options) {
    const Governor::Budget budget = budget_of(options);
    if (budget.unlimited) return {};
    constexpr double kOne = 65'536, kLongest = UINT32_MAX;
    const double microseconds = std::min(options.warmup * 1e6, kLongest);
    return {static_cast<uint32_t>(std::max(1.0, budget.share * kOne)), static_cast<uint32_t>(microseconds)};
}

DeviceSide::Choice DeviceSide::reads(const OpEvent& event, int64_t step) noexcept {
    constexpr OutputSet kAll = OutputSet::all();
    constexpr int64_t kAlarm = 1'000'000'000;  // nanoseconds, of a program that takes no step
    if (!unread.usable()) return {kAll, Governor::Spent::Once};
    const Governor::Window window = governor.window(step);
    if (tier.is_alarmed(step) && (step > 0 || clock() - alarmed_at.load() < kAlarm))
        return {kAll, Governor::Spent::Once};
    switch (window) {
        case Governor::Window::Opening: return {kAll, Governor::Spent::InWindow};
        case Governor::Window::Open:
            return {tier.is(Tier::Boundary) ? tier.reads(event) : kAll, Governor::Spent::InWindow};
        case Governor::Window::Closed: break;
    }
    return {{}, Governor::Spent::InWindow};
}

void DeviceSide::alarm(int64_t step) {
    constexpr int64_t kPause = 16'000'000'000;  // nanoseconds, of a program that takes no step
    const int64_t now = clock(), last = alarmed_at.load();
    if (last == 0 || now - last > kPause) alarmed_at.store(now);
    tier.alarm(step);
}

void DeviceSide::pause() {
    constexpr long kPollNanoseconds = 2'000'000;
    const timespec time{0, kPollNanoseconds};
    nanosleep(&time, nullptr);
}

void DeviceSide::pause_briefly(int asked) {
    constexpr int kYields = 200;
    if (asked < kYields) {
        sched_yield();
        return;
    }
    const timespec time{0, 50'000};
    nanosleep(&time, nullptr);
}

bool DeviceSide::begin_await(OpSeq op) {
    const std::lock_guard<std::mutex> lock(settling);
    if (!late) awaited.insert(op);
    return !late;
}

bool DeviceSide::collect(const DeviceEvent& event, uint64_t numbers) {
    while (answers.size() < numbers) {
        DeviceScanner::Reading reading{};
        const DeviceScanner::Answer answer = scanner.answer((event.sequence + answers.size()).number, reading);
        if (answer == DeviceScanner::Answer::NotYet) return false;
        const bool read = answer == DeviceScanner::Answer::Read;
        int hit = -1;
        if (read && reading.has_hit) {
            hit = static_cast<int>(hits.size());
            hits.push_back(reading.hit);
        }
        answers.push_back({read, reading.range, hit, reading.why});
    }
    return true;
}

bool DeviceSide::collect(const DeviceEvent& event) {
    if (!event.scanned) return true;
    const uint64_t always = event.handed + event.watched;
    if (!collect(event, always)) return false;
    if (event.look_back == nullptr) return true;
    if (saw_bad(event)) return collect(event, event.numbers);
    for (uint64_t n = always; n < event.numbers; ++n) scanner.give_up((event.sequence + n).number);
    return true;
}

const DeviceSide::Answer* DeviceSide::watched_answer(const DeviceEvent& event, int32_t i) const {
    if (!event.scanned || i >= 63 || ((event.watch >> i) & 1) == 0) return nullptr;
    const int before = std::popcount(event.watch & ((uint64_t(1) << i) - 1));
    const Answer& answer = answers[event.handed + static_cast<size_t>(before)];
    return answer.read ? &answer : nullptr;
}

bool DeviceSide::saw_bad(const DeviceEvent& event) const {
    if (!event.scanned) return false;
    const auto first = answers.begin() + event.handed;
    return std::any_of(first, first + event.watched, [](const Answer& a) { return a.read && a.range.suspicious; });
}

void DeviceSide::begin_child() {
    log.forget();
    unread.forget_parents();
    captured.forget_parents();
    forget_answers();
    outcome = {};
    publishing = names = late = false;
    awaited.clear();
    kept_back.clear();
    inside.store(0);
    asking.store(false);
}

}  // namespace numsan
