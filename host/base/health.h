// What a scan found out about one tensor. Plain data.
#pragma once

#include <cstdint>

namespace numsan {

/// Kinds of non-finite value; a set of them is a KindSet.
enum Kind : uint8_t { kNaN = 1, kPosInf = 2, kNegInf = 4 };
using KindSet = uint8_t;
inline constexpr KindSet kAnyInf = kPosInf | kNegInf;

/// Result of the quick pass. Magnitudes are bit patterns without the sign, so they order as the values do.
struct Range {
    uint64_t max_magnitude;          ///< largest magnitude pattern, 0 for an empty tensor
    uint64_t min_nonzero_magnitude;  ///< smallest magnitude pattern that is not 0, ~0 when there is none
    bool suspicious;                 ///< something may be non-finite: take the exact pass
};

/// False for Range{}: nothing was read.
inline bool was_read(const Range& range) { return range.min_nonzero_magnitude != 0; }

/// Result of the exact pass: counts per class over all real lanes, ranges over the finite ones.
/// `first_bad` is the logical (row-major) index of the first element that is not finite, -1 when there is none.
struct Health {
    int64_t elements;
    int64_t nan;
    int64_t pos_inf;
    int64_t neg_inf;
    int64_t subnormal;
    int64_t zero;
    double absmax;  ///< of finite values; 0 when there is none
    double absmin;  ///< of finite non-zero values; 0 when there is none
    double min;
    double max;
    int64_t finite;
    int64_t first_bad;
    uint64_t first_bad_bits;
    KindSet first_bad_kind;

    KindSet kinds() const {
        return static_cast<KindSet>((nan ? kNaN : 0) | (pos_inf ? kPosInf : 0) | (neg_inf ? kNegInf : 0));
    }
};

}  // namespace numsan
