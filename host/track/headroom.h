// Finite values that are close to the largest number of a 16- or 8-bit type, or were cut to it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "host/base/ids.h"
#include "host/base/scanner.h"
#include "host/track/lineage.h"

namespace numsan {

/// The magnitude pattern from which on a value has less room above it than `share` of the type's range leaves; beyond
/// every pattern for types of 32 bits and more, and for a share of 0.
uint64_t near_overflow_pattern(DType dtype, double share);

/// Output `index` of a forward op came close to the largest number of its type by what the op computed: its operands
/// had room, and neither a clamp, a constant nor a factor of the program's own keeps the values where they are. Says
/// what was measured.
std::optional<std::string> close_to_largest(const OpEvent& event, int32_t index, OpSeq seq, double share,
                                            const Scanner& scanner, const Lineage& lineage);

struct Saturation {
    std::string evidence;
    bool scaled;  ///< before it they were multiplied by a number or a smaller tensor: a scale, which may follow them
};

/// A cast to a 16- or 8-bit type wrote the type's largest number in place of larger values, in a quarter of the tensor
/// or more. Reads some thousand elements.
std::optional<Saturation> saturated(const OpEvent& event, int32_t index, OpSeq seq, const Lineage& lineage);

/// [MT] Which places were looked at for this, and how often: where an op's results are always large, by design, that
/// is found out a few times and then costs nothing. May forget; a place without such a result for kForgotten steps
/// gives way to another that falls on the same word. No lock, no allocation.
class NearOverflowPlaces {
  public:
    /// Whether this place should be looked at now: some steps in a row, then after ever more of them; kMostLooks times
    /// in all.
    bool due(const OpInfo* op, StackId stack, int64_t step) noexcept {
        const uint64_t mixed = (reinterpret_cast<uintptr_t>(op) ^ (uint64_t(stack) << 20)) * 0x9e3779b97f4a7c15ull;
        std::atomic<uint64_t>& word = places_[mixed >> 56];
        const uint64_t tag = (mixed >> 32 & 0xffffff) | 1;
        const uint64_t now = static_cast<uint64_t>(step) & 0xffffffff;
        const uint64_t kept = word.load(std::memory_order_relaxed);
        uint64_t looks = 0;
        if (kept >> 40 == tag) {
            looks = kept & 0xff;
            // Without steps nothing else distinguishes one pass from another.
            if (looks >= kMostLooks || (step > 0 && ((now - (kept >> 8)) & 0xffffffff) < pause_after(looks)))
                return false;
        } else if (kept != 0 && (kept & 0xff) < kMostLooks && ((now - (kept >> 8)) & 0xffffffff) <= kForgotten) {
            return false;  // the other place first
        }
        word.store(tag << 40 | now << 8 | (looks + 1), std::memory_order_relaxed);
        return true;
    }

  private:
    /// In steps: 1, 1, 1, 2, 4, ... 32. Shorter than what makes a place give way.
    static constexpr uint64_t pause_after(uint64_t looks) {
        return looks < 4 ? 1 : std::min<uint64_t>(uint64_t(1) << (looks - 3), kForgotten / 2);
    }

    static constexpr uint64_t kMostLooks = 16;
    static constexpr uint64_t kForgotten = 64;  // steps
    std::array<std::atomic<uint64_t>, 256> places_{};
};

}  // namespace numsan
