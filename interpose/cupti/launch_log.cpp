#include "interpose/cupti/launch_log.h"

#include <algorithm>
#include <cstring>

namespace numsan {

uint32_t LaunchLog::this_thread() noexcept {
    static constinit std::atomic<uint32_t> last{0};
    static thread_local constinit uint32_t mine = 0;
    if (mine == 0) mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

void LaunchLog::add(LoggedLaunch launch) noexcept {
    launch.thread = this_thread();
    const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    launch.number = number + 1;
    Slot& slot = slots_[number % kSlots];
    if (slot.number.exchange(kBusy, std::memory_order_acq_rel) == kBusy) return;
    Words words{};
    std::memcpy(words.data(), &launch, sizeof launch);
    for (size_t i = 0; i < words.size(); ++i) slot.words[i].store(words[i], std::memory_order_release);
    slot.number.store(number + 1, std::memory_order_release);
}

bool LaunchLog::read(uint64_t number, LoggedLaunch& launch) const noexcept {
    const Slot& slot = slots_[number % kSlots];
    if (slot.number.load(std::memory_order_acquire) != number + 1) return false;
    Words words{};
    for (size_t i = 0; i < words.size(); ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    if (slot.number.load(std::memory_order_relaxed) != number + 1) return false;
    std::memcpy(static_cast<void*>(&launch), words.data(), sizeof launch);
    return true;
}

std::vector<LoggedLaunch> LaunchLog::of(const LaunchSpan& span) const {
    std::vector<LoggedLaunch> found;
    const uint64_t all = count();
    if (all > kSlots && span.first < all - kSlots) return found;
    for (uint64_t number = span.end; number > span.first && found.size() < kMostOfSpan; --number) {
        LoggedLaunch launch;
        if (read(number - 1, launch) && launch.thread == span.thread) found.push_back(launch);
    }
    std::reverse(found.begin(), found.end());
    return found;
}

}  // namespace numsan
