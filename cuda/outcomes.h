// What the host knows of the outputs that it handed over and has not reported yet. Numbers take turns in a fixed table.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cuda/kernel/scan_policy.h"
#include "cuda/skip_reason.h"

namespace numsan::gpu {

/// [MT] Nothing throws but the constructor. A number's place is its own until the number kResults later comes.
class Outcomes {
  public:
    enum class Kind : uint8_t {
        None,      ///< never heard of, or forgotten
        Expected,  ///< pending, or in a queue of the context `value`: the device will report
        Empty,     ///< there was nothing to read
        Skipped,   ///< for the reason `value`
    };
    struct Outcome {
        Kind kind;
        uint8_t value;
        SkipReason why() const { return static_cast<SkipReason>(value); }
        static Outcome skipped(SkipReason why) { return {Kind::Skipped, static_cast<uint8_t>(why)}; }
    };

    Outcomes() : words_(new std::atomic<uint64_t>[kResults]()) {}

    void set(uint64_t sequence, Outcome outcome) noexcept {
        place(sequence).store(word(sequence, outcome), std::memory_order_release);
    }
    /// Only if the number is still expected from that context: an output is reported once.
    void give_up(uint64_t sequence, uint8_t context, SkipReason why) noexcept {
        uint64_t expected = word(sequence, {Kind::Expected, context});
        place(sequence).compare_exchange_strong(expected, word(sequence, Outcome::skipped(why)),
                                                std::memory_order_acq_rel);
    }
    Outcome of(uint64_t sequence) const noexcept {
        const uint64_t seen = words_[sequence & (kResults - 1)].load(std::memory_order_acquire);
        if (seen >> 16 != ((sequence + 1) & (~uint64_t(0) >> 16))) return {Kind::None, 0};
        return {static_cast<Kind>(seen >> 8 & 0xff), static_cast<uint8_t>(seen)};
    }

  private:
    // 48 bits of the number, 8 of the kind, 8 of the value; 0 is no number's.
    static uint64_t word(uint64_t sequence, Outcome outcome) {
        return (sequence + 1) << 16 | uint64_t(outcome.kind) << 8 | outcome.value;
    }
    std::atomic<uint64_t>& place(uint64_t sequence) { return words_[sequence & (kResults - 1)]; }

    std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace numsan::gpu
