// Which outputs of an op something holds of. Depends on nothing.
#pragma once

#include <cstdint>

namespace numsan {

/// One bit an output. An op over lists may have more outputs than there are bits: the last bit stands for all from
/// there on.
class OutputSet {
  public:
    constexpr OutputSet() = default;
    static constexpr OutputSet all() { return OutputSet(~uint64_t(0)); }
    static constexpr OutputSet only(int32_t index) { return OutputSet(bit(index)); }

    constexpr bool contains(int32_t index) const { return (bits_ & bit(index)) != 0; }
    constexpr bool any() const { return bits_ != 0; }
    constexpr bool is_all() const { return bits_ == ~uint64_t(0); }
    constexpr void add(int32_t index) { bits_ |= bit(index); }
    bool operator==(const OutputSet&) const = default;
    constexpr OutputSet others() const { return OutputSet(~bits_); }

  private:
    explicit constexpr OutputSet(uint64_t bits) : bits_(bits) {}
    static constexpr uint64_t bit(int32_t index) { return uint64_t(1) << (index < 63 ? index : 63); }

    uint64_t bits_ = 0;
};
static_assert(sizeof(OutputSet) == sizeof(uint64_t));

}  // namespace numsan
