// A plain value that one thread writes while others read it, without a lock: a reader sees a whole value or none.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace numsan {

/// Sequence lock over words, without fences, which the thread sanitizer cannot follow: whoever reads a word of a new
/// value also sees that its version is odd. A writer that meets another gives up: the value is a memory aid that may
/// forget, never invent.
template <class T>
class AtomicRecord {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint64_t) == 0);

  public:
    static constexpr size_t kWords = sizeof(T) / sizeof(uint64_t);

    /// [MT] False when another thread is writing: nothing changed.
    bool store(const T& value) noexcept {
        uint64_t words[kWords];
        std::memcpy(words, &value, sizeof value);
        return store_words(words);
    }

    /// The same, of a value whose words the caller has: on a path where putting them together would take time.
    bool store_words(const uint64_t (&words)[kWords]) noexcept {
        uint32_t version = version_.load(std::memory_order_relaxed);
        if ((version & 1) != 0 || !version_.compare_exchange_strong(version, version + 1, std::memory_order_acquire,
                                                                    std::memory_order_relaxed)) {
            return false;
        }
        // Unrolled, the words go from where they were computed to where they are kept.
#pragma GCC unroll 16
        for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
        version_.store(version + 2, std::memory_order_release);
        return true;
    }

    /// [MT] False when the value changed while it was read.
    bool load(T& value) const noexcept {
        const uint32_t before = version_.load(std::memory_order_acquire);
        if ((before & 1) != 0) return false;
        uint64_t words[kWords];
#pragma GCC unroll 16
        for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
        if (version_.load(std::memory_order_relaxed) != before) return false;
        std::memcpy(&value, words, sizeof value);
        return true;
    }

    /// [MT] One word of a value, which may be another one the next moment.
    uint64_t word(size_t index) const noexcept { return words_[index].load(std::memory_order_relaxed); }

  private:
    std::atomic<uint32_t> version_{0};
    std::atomic<uint64_t> words_[kWords] = {};
};

}  // namespace numsan
