// Integer loops over 256-byte blocks: m = bits without the sign, max(m), min(m - 1) with wrap so that zero does not
// count.
#include "host/scan/range_kernels.h"

#include "host/scan/kernel_target.h"

namespace numsan {
namespace kernels {

template <class T>
struct Extremes {
    T largest;
    T smallest_less_one;
    T negative_zero;  // 0 when that pattern was seen, FNUZ only
};

template <class T, bool kFnuz>
NUMSAN_KERNEL_BODY void add(T bits, T mask, T& largest, T& smallest, T& negative_zero) {
    const T m = static_cast<T>(bits & mask);
    const T k = static_cast<T>(m - 1);
    largest = m > largest ? m : largest;
    smallest = k < smallest ? k : smallest;
    if (kFnuz) {
        const T distance = static_cast<T>(bits ^ static_cast<T>(mask + 1));
        negative_zero = distance < negative_zero ? distance : negative_zero;
    }
}

// A hint, which may point past the end: it reads nothing that the program could notice.
constexpr uintptr_t kAhead = 2048;
NUMSAN_KERNEL_BODY void prefetch(const void* p, uintptr_t ahead) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + ahead));
}

template <class T, bool kFnuz>
NUMSAN_KERNEL_BODY Extremes<T> run(const unsigned char* data, int64_t lanes, T mask) {
    using Lane = typename Packed<T>::type;
    constexpr int kLanes = 256 / sizeof(T);
    const Lane* p = reinterpret_cast<const Lane*>(data);
    Extremes<T> e{0, static_cast<T>(~T(0)), static_cast<T>(~T(0))};
    int64_t i = 0;
    if (lanes >= kLanes) {
        T largest[kLanes], smallest[kLanes], negative_zero[kLanes];
        for (int j = 0; j < kLanes; ++j) {
            largest[j] = 0;
            smallest[j] = static_cast<T>(~T(0));
            negative_zero[j] = static_cast<T>(~T(0));
        }
        for (; i + kLanes <= lanes; i += kLanes) {
            for (uintptr_t line = 0; line < 4; ++line) prefetch(p + i, kAhead + 64 * line);
            NUMSAN_VECTOR_LOOP
            for (int j = 0; j < kLanes; ++j) {
                add<T, kFnuz>(p[i + j], mask, largest[j], smallest[j], negative_zero[j]);
            }
        }
        for (int j = 0; j < kLanes; ++j) {
            e.largest = largest[j] > e.largest ? largest[j] : e.largest;
            e.smallest_less_one = smallest[j] < e.smallest_less_one ? smallest[j] : e.smallest_less_one;
            e.negative_zero = negative_zero[j] < e.negative_zero ? negative_zero[j] : e.negative_zero;
        }
    }
    for (; i < lanes; ++i) add<T, kFnuz>(p[i], mask, e.largest, e.smallest_less_one, e.negative_zero);
    return e;
}

template <class T, bool kFnuz>
NUMSAN_KERNEL_BODY Extremes<T> grid(const Block& b, T mask) {
    using Lane = typename Packed<T>::type;
    Extremes<T> e{0, static_cast<T>(~T(0)), static_cast<T>(~T(0))};
    for (int64_t r = 0; r < b.rows; ++r) {
        const unsigned char* row = b.base + r * b.row_stride;
        for (int64_t c = 0; c < b.columns; ++c) {
            add<T, kFnuz>(*reinterpret_cast<const Lane*>(row + c * b.column_stride), mask, e.largest,
                          e.smallest_less_one, e.negative_zero);
        }
    }
    return e;
}

// One pair by name for each width.
#define NUMSAN_RANGE_KERNELS(suffix, T, fnuz)                                                                         \
    NUMSAN_KERNEL(Extremes<T>, run_##suffix, (const unsigned char* data, int64_t lanes, T mask), (data, lanes, mask), \
                  run<T, fnuz>)                                                                                       \
    NUMSAN_KERNEL(Extremes<T>, grid_##suffix, (const Block& block, T mask), (block, mask), grid<T, fnuz>)
NUMSAN_RANGE_KERNELS(u8, uint8_t, false)
NUMSAN_RANGE_KERNELS(u8_fnuz, uint8_t, true)
NUMSAN_RANGE_KERNELS(u16, uint16_t, false)
NUMSAN_RANGE_KERNELS(u32, uint32_t, false)
NUMSAN_RANGE_KERNELS(u64, uint64_t, false)
#undef NUMSAN_RANGE_KERNELS

template <class T>
void merge(const Extremes<T>& e, RangeState& state) {
    if (e.largest > state.largest) state.largest = e.largest;
    const bool only_zeros = e.smallest_less_one == static_cast<T>(~T(0));
    if (!only_zeros && e.smallest_less_one < state.smallest_less_one) state.smallest_less_one = e.smallest_less_one;
    state.negative_zero = state.negative_zero || e.negative_zero == 0;
}

}  // namespace kernels

namespace {

inline __attribute__((always_inline)) void gather(const DTypeInfo& type, const void* data, int64_t lanes,
                                                  RangeState& state) {
    using namespace kernels;
    const unsigned char* p = static_cast<const unsigned char*>(data);
    const uint64_t mask = type.magnitude_mask();
    switch (type.lane_bytes) {
        case 1:
            if (type.infinity == InfinityKind::FNUZ) {
                merge(run_u8_fnuz(p, lanes, static_cast<uint8_t>(mask)), state);
            } else {
                merge(run_u8(p, lanes, static_cast<uint8_t>(mask)), state);
            }
            break;
        case 2: merge(run_u16(p, lanes, static_cast<uint16_t>(mask)), state); break;
        case 4: merge(run_u32(p, lanes, static_cast<uint32_t>(mask)), state); break;
        default: merge(run_u64(p, lanes, mask), state); break;
    }
}

/// All that a type says is known to the compiler.
template <DType kType>
Range range_of_known(const void* data, int64_t lanes) {
    constexpr DTypeInfo type = info(kType);
    RangeState state;
    gather(type, data, lanes, state);
    return range_of(type, state);
}

}  // namespace

void gather_range(const DTypeInfo& type, const void* data, int64_t lanes, RangeState& state) noexcept {
    gather(type, data, lanes, state);
}

Range range_of_run(DType dtype, const void* data, int64_t lanes) noexcept {
    switch (dtype) {
#define NUMSAN_DTYPE(id, name, bytes, its_lanes, exp, man, bias, inf) \
    case DType::id:                                                   \
        return range_of_known<DType::id>(data, lanes);
#include "host/base/dtype.def"
#undef NUMSAN_DTYPE
    }
    return {};
}

void gather_range(const DTypeInfo& type, const Block& block, RangeState& state) noexcept {
    using namespace kernels;
    if (block.column_stride == type.lane_bytes && block.columns * type.lane_bytes >= 128) {
        for (int64_t r = 0; r < block.rows; ++r) {
            gather_range(type, block.base + r * block.row_stride, block.columns, state);
        }
        return;
    }
    const uint64_t mask = type.magnitude_mask();
    switch (type.lane_bytes) {
        case 1:
            if (type.infinity == InfinityKind::FNUZ) {
                merge(grid_u8_fnuz(block, static_cast<uint8_t>(mask)), state);
            } else {
                merge(grid_u8(block, static_cast<uint8_t>(mask)), state);
            }
            break;
        case 2: merge(grid_u16(block, static_cast<uint16_t>(mask)), state); break;
        case 4: merge(grid_u32(block, static_cast<uint32_t>(mask)), state); break;
        default: merge(grid_u64(block, mask), state); break;
    }
}

}  // namespace numsan
