// Integer loops over 256-byte blocks: the largest magnitude shows NaN, the smallest distance to a pattern shows an
// infinity.
#include "host/scan/kinds_kernels.h"

#include "host/scan/kernel_target.h"

namespace numsan {
namespace kernels {

template <class T>
struct Nearest {
    T largest;   // magnitude
    T positive;  // 0 when +inf was seen
    T negative;  // 0 when -inf was seen
};

template <class T>
NUMSAN_KERNEL_BODY void look(T bits, T exponent, T sign, T& largest, T& positive, T& negative) {
    const T magnitude = static_cast<T>(bits & static_cast<T>(sign - 1));
    const T to_positive = static_cast<T>(bits ^ exponent);
    const T to_negative = static_cast<T>(bits ^ static_cast<T>(exponent | sign));
    largest = magnitude > largest ? magnitude : largest;
    positive = to_positive < positive ? to_positive : positive;
    negative = to_negative < negative ? to_negative : negative;
}

template <class T>
NUMSAN_KERNEL_BODY Nearest<T> nearest(const void* data, int64_t lanes, T exponent, T sign) {
    using Lane = typename Packed<T>::type;
    constexpr int kLanes = 256 / sizeof(T);
    const Lane* p = static_cast<const Lane*>(data);
    Nearest<T> all{0, static_cast<T>(~T(0)), static_cast<T>(~T(0))};
    int64_t i = 0;
    if (lanes >= kLanes) {
        T largest[kLanes], positive[kLanes], negative[kLanes];
        for (int j = 0; j < kLanes; ++j) {
            largest[j] = 0;
            positive[j] = negative[j] = static_cast<T>(~T(0));
        }
        for (; i + kLanes <= lanes; i += kLanes) {
            NUMSAN_VECTOR_LOOP
            for (int j = 0; j < kLanes; ++j) look<T>(p[i + j], exponent, sign, largest[j], positive[j], negative[j]);
        }
        for (int j = 0; j < kLanes; ++j) {
            all.largest = largest[j] > all.largest ? largest[j] : all.largest;
            all.positive = positive[j] < all.positive ? positive[j] : all.positive;
            all.negative = negative[j] < all.negative ? negative[j] : all.negative;
        }
    }
    for (; i < lanes; ++i) look<T>(p[i], exponent, sign, all.largest, all.positive, all.negative);
    return all;
}

#define NUMSAN_KINDS_KERNEL(suffix, T)                                                                 \
    NUMSAN_KERNEL(Nearest<T>, nearest_##suffix, (const void* data, int64_t lanes, T exponent, T sign), \
                  (data, lanes, exponent, sign), nearest<T>)
NUMSAN_KINDS_KERNEL(u8, uint8_t)
NUMSAN_KINDS_KERNEL(u16, uint16_t)
NUMSAN_KINDS_KERNEL(u32, uint32_t)
NUMSAN_KINDS_KERNEL(u64, uint64_t)
#undef NUMSAN_KINDS_KERNEL

template <class T>
KindSet kinds_of(const Nearest<T>& found, T exponent) {
    return static_cast<KindSet>((found.largest > exponent ? kNaN : 0) | (found.positive == 0 ? kPosInf : 0) |
                                (found.negative == 0 ? kNegInf : 0));
}

}  // namespace kernels

KindSet gather_kinds(const DTypeInfo& type, const void* data, int64_t lanes) noexcept {
    using namespace kernels;
    const uint64_t e = type.exponent_mask();
    const uint64_t s = type.sign_mask();
    switch (type.lane_bytes) {
        case 1:
            return kinds_of<uint8_t>(nearest_u8(data, lanes, static_cast<uint8_t>(e), static_cast<uint8_t>(s)),
                                     static_cast<uint8_t>(e));
        case 2:
            return kinds_of<uint16_t>(nearest_u16(data, lanes, static_cast<uint16_t>(e), static_cast<uint16_t>(s)),
                                      static_cast<uint16_t>(e));
        case 4:
            return kinds_of<uint32_t>(nearest_u32(data, lanes, static_cast<uint32_t>(e), static_cast<uint32_t>(s)),
                                      static_cast<uint32_t>(e));
        default: return kinds_of<uint64_t>(nearest_u64(data, lanes, e, s), e);
    }
}

}  // namespace numsan
