// Element types and their bit layout, generated from dtype.def. Depends on nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace numsan {

enum class InfinityKind : uint8_t { IEEE, FN, FNUZ, FNU };

enum class DType : uint8_t {
#define NUMSAN_DTYPE(id, name, bytes, lanes, exp, man, bias, inf) id,
#include "host/base/dtype.def"
#undef NUMSAN_DTYPE
};

/// Layout of one element type. `lane_bytes` is the size of one real number; a complex element has two lanes.
struct DTypeInfo {
    const char* name;
    uint8_t lane_bytes;
    uint8_t lanes;
    uint8_t exponent_bits;
    uint8_t mantissa_bits;
    uint16_t bias;
    InfinityKind infinity;

    /// A type without a zero has no sign and no subnormal numbers either; its pattern 0 is its smallest number.
    constexpr bool has_zero() const { return infinity != InfinityKind::FNU; }
    /// Has fewer bits than float32: 16 or 8.
    constexpr bool is_narrow() const { return lane_bytes < 4; }
    constexpr uint32_t element_bytes() const { return uint32_t(lane_bytes) * lanes; }
    constexpr uint64_t mantissa_mask() const { return (uint64_t(1) << mantissa_bits) - 1; }
    constexpr uint64_t exponent_mask() const { return ((uint64_t(1) << exponent_bits) - 1) << mantissa_bits; }
    /// All bits but the sign.
    constexpr uint64_t magnitude_mask() const { return exponent_mask() | mantissa_mask(); }
    /// Beyond the lane for a type without a sign.
    constexpr uint64_t sign_mask() const { return magnitude_mask() + 1; }
};

inline constexpr DTypeInfo kDTypes[] = {
#define NUMSAN_DTYPE(id, name, bytes, lanes, exp, man, bias, inf) \
    {name, bytes, lanes, exp, man, bias, InfinityKind::inf},
#include "host/base/dtype.def"
#undef NUMSAN_DTYPE
};

inline constexpr int kDTypeCount = sizeof(kDTypes) / sizeof(kDTypes[0]);

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }

/// The type of a name like "float16"; none for any other text.
constexpr std::optional<DType> dtype_of(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i) {
        if (name == kDTypes[i].name) return static_cast<DType>(i);
    }
    return std::nullopt;
}

}  // namespace numsan
