// Counts in integers only; patterns become numbers once, at the end.
#include "host/scan/exact_pass.h"

#include <algorithm>
#include <type_traits>

#include "host/base/value_classes.h"
#include "host/scan/kernel_target.h"
#include "host/scan/layout.h"

namespace numsan {
namespace kernels {

struct Counts {
    int64_t lanes = 0;
    int64_t nan = 0;
    int64_t pos_inf = 0;
    int64_t neg_inf = 0;
    int64_t subnormal = 0;
    int64_t zero = 0;
    uint64_t largest = 0;              // magnitude of a finite value
    uint64_t smallest = ~uint64_t(0);  // of a finite value that is not zero
    int64_t lowest = INT64_MAX;        // finite values as signed magnitudes
    int64_t highest = INT64_MIN;
};

// One chunk of a row: counters have the lane's width so that the loop vectorises, and a chunk is short enough for them.
template <class T, bool kDense>
NUMSAN_KERNEL_BODY void count_chunk(const unsigned char* data, int n, int64_t stride, const ValueClasses& c,
                                    Counts& out) {
    using Lane = typename Packed<T>::type;
    using S = std::make_signed_t<T>;
    const T mask = static_cast<T>(c.magnitude_mask), infinity = static_cast<T>(c.infinity);
    const T largest_number = static_cast<T>(c.largest_number);
    const T normal = static_cast<T>(c.smallest_normal), sign = static_cast<T>(mask + 1);
    const T negative_zero_nan = c.negative_zero_is_nan ? 1 : 0;
    constexpr S kLow = static_cast<S>(T(1) << (8 * sizeof(T) - 1)), kHigh = static_cast<S>(~kLow);
    T nan = 0, pos_inf = 0, neg_inf = 0, subnormal = 0, zero = 0, largest = 0, smallest = static_cast<T>(~T(0));
    S lowest = kHigh, highest = kLow;
    for (int i = 0; i < n; ++i) {
        const T bits =
            kDense ? T(reinterpret_cast<const Lane*>(data)[i]) : T(*reinterpret_cast<const Lane*>(data + i * stride));
        const T m = static_cast<T>(bits & mask);
        const T negative = (bits & sign) != 0 ? 1 : 0;
        const T extra_nan = static_cast<T>((bits == sign ? 1 : 0) & negative_zero_nan);
        const T is_nan = static_cast<T>((m > largest_number ? 1 : 0) | extra_nan);
        const T is_inf = m == infinity ? 1 : 0;
        const T bad = static_cast<T>(is_nan | is_inf);
        const T is_zero = static_cast<T>((m == 0 ? 1 : 0) & (bad ^ 1));
        nan = static_cast<T>(nan + is_nan);
        pos_inf = static_cast<T>(pos_inf + (is_inf & (negative ^ 1)));
        neg_inf = static_cast<T>(neg_inf + (is_inf & negative));
        zero = static_cast<T>(zero + is_zero);
        subnormal = static_cast<T>(subnormal + ((m < normal ? 1 : 0) & (m != 0 ? 1 : 0)));
        const T finite_m = bad ? T(0) : m;
        const T less_one = static_cast<T>(finite_m - 1);
        largest = finite_m > largest ? finite_m : largest;
        smallest = less_one < smallest ? less_one : smallest;
        const S value = static_cast<S>(negative ? static_cast<T>(T(0) - m) : m);
        const S low = bad ? kHigh : value, high = bad ? kLow : value;
        lowest = low < lowest ? low : lowest;
        highest = high > highest ? high : highest;
    }
    out.lanes += n;
    out.nan += int64_t(nan);
    out.pos_inf += int64_t(pos_inf);
    out.neg_inf += int64_t(neg_inf);
    out.subnormal += int64_t(subnormal);
    out.zero += int64_t(zero);
    if (largest > out.largest) out.largest = largest;
    if (smallest != static_cast<T>(~T(0))) out.smallest = std::min(out.smallest, uint64_t(smallest) + 1);
    if (lowest <= highest) {
        out.lowest = std::min(out.lowest, static_cast<int64_t>(lowest));
        out.highest = std::max(out.highest, static_cast<int64_t>(highest));
    }
}

template <class T>
NUMSAN_KERNEL_BODY void count(const Block& b, const ValueClasses& c, Counts& out) {
    constexpr int64_t kChunk = sizeof(T) == 1 ? 128 : 8192;
    for (int64_t r = 0; r < b.rows; ++r) {
        const unsigned char* row = b.base + r * b.row_stride;
        for (int64_t i = 0; i < b.columns; i += kChunk) {
            const int n = static_cast<int>(b.columns - i < kChunk ? b.columns - i : kChunk);
            const unsigned char* p = row + i * b.column_stride;
            if (b.column_stride == int64_t(sizeof(T))) {
                count_chunk<T, true>(p, n, 0, c, out);
            } else {
                count_chunk<T, false>(p, n, b.column_stride, c, out);
            }
        }
    }
}

#define NUMSAN_COUNT_KERNEL(suffix, T) \
    NUMSAN_KERNEL(void, count_##suffix, (const Block& b, const ValueClasses& c, Counts& out), (b, c, out), count<T>)
NUMSAN_COUNT_KERNEL(u8, uint8_t)
NUMSAN_COUNT_KERNEL(u16, uint16_t)
NUMSAN_COUNT_KERNEL(u32, uint32_t)
NUMSAN_COUNT_KERNEL(u64, uint64_t)
#undef NUMSAN_COUNT_KERNEL

// Bytes without a sign and without a zero, which the lanes above rely on.
void count_unsigned(const Block& b, const ValueClasses& c, Counts& out) {
    for (int64_t r = 0; r < b.rows; ++r) {
        for (int64_t i = 0; i < b.columns; ++i) {
            const uint64_t bits = b.base[r * b.row_stride + i * b.column_stride];
            if (bits > c.largest_number) {
                ++out.nan;
                continue;
            }
            out.largest = std::max(out.largest, bits);
            out.smallest = std::min(out.smallest, bits);
        }
    }
    out.lanes += b.rows * b.columns;
    if (out.smallest <= out.largest) {
        out.lowest = static_cast<int64_t>(out.smallest);
        out.highest = static_cast<int64_t>(out.largest);
    }
}

void count_block(const DTypeInfo& type, const Block& b, const ValueClasses& c, Counts& out) {
    if (!type.has_zero()) return count_unsigned(b, c, out);
    switch (type.lane_bytes) {
        case 1: count_u8(b, c, out); break;
        case 2: count_u16(b, c, out); break;
        case 4: count_u32(b, c, out); break;
        default: count_u64(b, c, out); break;
    }
}

struct FirstBad {
    int64_t index = -1;
    uint64_t bits = 0;
    KindSet kinds = 0;
};

KindSet classify(uint64_t bits, const ValueClasses& c) {
    const uint64_t m = bits & c.magnitude_mask;
    if (m > c.largest_number || (c.negative_zero_is_nan && bits == c.magnitude_mask + 1)) return kNaN;
    if (m != c.infinity) return 0;
    return bits > c.magnitude_mask ? kNegInf : kPosInf;
}

// Looks through one block in logical order. Returns the column-and-row weight of the first bad element, -1 when there
// is none.
template <class T>
int64_t find_in_block(const Block& b, int64_t column_weight, int64_t row_weight, int lanes, const ValueClasses& c,
                      FirstBad& found) {
    using Lane = typename Packed<T>::type;
    for (int64_t r = 0; r < b.rows; ++r) {
        const unsigned char* row = b.base + r * b.row_stride;
        for (int64_t i = 0; i < b.columns; ++i) {
            const Lane* element = reinterpret_cast<const Lane*>(row + i * b.column_stride);
            for (int lane = 0; lane < lanes; ++lane) {
                const KindSet kind = classify(element[lane], c);
                if (kind == 0) continue;
                if (found.kinds == 0) found.bits = element[lane];
                found.kinds = static_cast<KindSet>(found.kinds | kind);
            }
            if (found.kinds != 0) return r * row_weight + i * column_weight;
        }
    }
    return -1;
}

FirstBad find_first_bad(const TensorView& tensor, const DTypeInfo& type, const ValueClasses& c) {
    FirstBad found;
    const Layout layout = logical_order(tensor);
    for_each_block(layout, [&](const Block& b, int64_t weight) {
        const int64_t column = layout.dims[0].weight, row = layout.dims[1].weight;
        int64_t at = -1;
        switch (type.lane_bytes) {
            case 1: at = find_in_block<uint8_t>(b, column, row, type.lanes, c, found); break;
            case 2: at = find_in_block<uint16_t>(b, column, row, type.lanes, c, found); break;
            case 4: at = find_in_block<uint32_t>(b, column, row, type.lanes, c, found); break;
            default: at = find_in_block<uint64_t>(b, column, row, type.lanes, c, found); break;
        }
        if (at >= 0) found.index = weight + at;
        return at < 0;
    });
    return found;
}

}  // namespace kernels

Health exact_health(const TensorView& tensor) noexcept {
    using namespace kernels;
    Health health{};
    health.first_bad = -1;
    const Layout layout = memory_order(tensor);
    if (layout.ndim == 0) return health;
    const DTypeInfo& type = info(tensor.dtype);
    const ValueClasses classes = value_classes(type);
    Counts counts;
    for_each_block(layout, [&](const Block& block, int64_t) {
        count_block(type, block, classes, counts);
        return true;
    });
    health.elements = counts.lanes / type.lanes * layout.repeat;
    health.nan = counts.nan * layout.repeat;
    health.pos_inf = counts.pos_inf * layout.repeat;
    health.neg_inf = counts.neg_inf * layout.repeat;
    health.subnormal = counts.subnormal * layout.repeat;
    health.zero = counts.zero * layout.repeat;
    const int64_t bad = counts.nan + counts.pos_inf + counts.neg_inf;
    health.finite = (counts.lanes - bad) * layout.repeat;
    if (counts.lowest <= counts.highest) {
        health.absmax = decode_magnitude(counts.largest, type);
        health.absmin = counts.smallest == ~uint64_t(0) ? 0 : decode_magnitude(counts.smallest, type);
        health.min = decode_signed_magnitude(counts.lowest, type);
        health.max = decode_signed_magnitude(counts.highest, type);
    }
    if (bad != 0) {
        const FirstBad first = find_first_bad(tensor, type, classes);
        health.first_bad = first.index;
        health.first_bad_bits = first.bits;
        health.first_bad_kind = first.kinds;
    }
    return health;
}

}  // namespace numsan
