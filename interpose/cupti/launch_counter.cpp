#include "interpose/cupti/launch_counter.h"

#include <cstring>

namespace numsan {
namespace {

/// After MurmurHash64A (Appleby, public domain), for names of a hundred bytes and more; never 0.
uint64_t hash(const char* text) noexcept {
    constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
    constexpr int kShift = 47;
    size_t bytes = std::strlen(text);
    uint64_t value = bytes * kMultiplier;
    while (bytes > 0) {
        uint64_t word = 0;
        const size_t taken = bytes < sizeof word ? bytes : sizeof word;
        std::memcpy(&word, text, taken);
        word *= kMultiplier;
        word = (word ^ (word >> kShift)) * kMultiplier;
        value = (value ^ word) * kMultiplier;
        text += taken;
        bytes -= taken;
    }
    value = (value ^ (value >> kShift)) * kMultiplier;
    return (value ^ (value >> kShift)) | 1;
}

}  // namespace

int LaunchCounter::count(const char* name) noexcept {
    if (name == nullptr) name = "(unnamed)";
    total_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t key = hash(name);
    for (size_t probe = 0; probe < kProbes; ++probe) {
        Slot& slot = slots_[(key / 2 + probe) % kSlots];
        uint64_t found = slot.key.load(std::memory_order_relaxed);
        if (found == 0 && slot.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
            std::strncpy(slot.name, name, kNameBytes - 1);
            slot.named.store(true, std::memory_order_release);
            found = key;
        }
        if (found != key) continue;
        slot.count.fetch_add(1, std::memory_order_relaxed);
        return static_cast<int>(&slot - slots_);
    }
    others_.fetch_add(1, std::memory_order_relaxed);
    return -1;
}

std::string LaunchCounter::name(int number) const {
    if (number < 0 || static_cast<size_t>(number) >= kSlots) return "";
    const Slot& slot = slots_[number];
    return slot.named.load(std::memory_order_acquire) ? slot.name : "";
}

std::map<std::string, int64_t> LaunchCounter::launches() const {
    std::map<std::string, int64_t> all;
    int64_t others = others_.load(std::memory_order_relaxed);
    for (const Slot& slot : slots_) {
        const int64_t count = slot.count.load(std::memory_order_relaxed);
        if (slot.named.load(std::memory_order_acquire)) {
            if (count > 0) all[slot.name] += count;
        } else {
            others += count;  // the thread that names it is not done yet
        }
    }
    if (others > 0) all["other kernels"] += others;
    return all;
}

void LaunchCounter::clear() noexcept {
    for (Slot& slot : slots_) slot.count.store(0, std::memory_order_relaxed);
    others_.store(0, std::memory_order_relaxed);
    total_.store(0, std::memory_order_relaxed);
}

}  // namespace numsan
