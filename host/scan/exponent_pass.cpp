#include "host/scan/exponent_pass.h"

#include <algorithm>
#include <bit>
#include <new>

#include "host/base/value_classes.h"
#include "host/scan/kernel_target.h"
#include "host/scan/layout.h"

namespace numsan {
namespace {

/// By the exponent as it is stored; the subnormal numbers of one exponent by the place of their leading bit.
class Counter {
  public:
    explicit Counter(const DTypeInfo& type)
        : type_(type), classes_(value_classes(type)), counts_((size_t(1) << type.exponent_bits) + type.mantissa_bits) {}

    template <class T>
    void block(const Block& b) {
        using Lane = typename Packed<T>::type;
        for (int64_t r = 0; r < b.rows; ++r) {
            const unsigned char* row = b.base + r * b.row_stride;
            for (int64_t i = 0; i < b.columns; ++i) add(*reinterpret_cast<const Lane*>(row + i * b.column_stride));
        }
    }

    ExponentCounts result(int64_t repeat) const {
        const auto used = [](int64_t count) { return count != 0; };
        const auto begin = std::find_if(counts_.begin(), counts_.end(), used);
        const auto end = std::find_if(counts_.rbegin(), counts_.rend(), used).base();
        if (begin == counts_.end()) return {};
        // The first of them is that of the smallest subnormal number, or of exponent 0 in a type without any.
        const int lowest = type_.has_zero() ? 1 - int(type_.bias) - int(type_.mantissa_bits) : -int(type_.bias);
        ExponentCounts made{lowest + static_cast<int>(begin - counts_.begin()), {begin, end}};
        for (int64_t& count : made.counts) count *= repeat;
        return made;
    }

  private:
    void add(uint64_t bits) {
        const uint64_t magnitude = bits & classes_.magnitude_mask;
        if (magnitude >= classes_.smallest_nonfinite()) return;
        const uint64_t exponent = magnitude >> type_.mantissa_bits;
        if (!type_.has_zero()) {
            ++counts_[exponent];
        } else if (exponent != 0) {
            ++counts_[exponent - 1 + type_.mantissa_bits];
        } else if (magnitude != 0) {
            ++counts_[static_cast<size_t>(std::bit_width(magnitude)) - 1];
        }
    }

    const DTypeInfo& type_;
    const ValueClasses classes_;
    std::vector<int64_t> counts_;
};

}  // namespace

ExponentCounts exponent_counts(const TensorView& tensor) noexcept {
    try {
        const Layout layout = memory_order(tensor);
        if (tensor.data == nullptr || layout.ndim == 0) return {};
        const DTypeInfo& type = info(tensor.dtype);
        Counter counter(type);
        for_each_block(layout, [&](const Block& block, int64_t) {
            switch (type.lane_bytes) {
                case 1: counter.block<uint8_t>(block); break;
                case 2: counter.block<uint16_t>(block); break;
                case 4: counter.block<uint32_t>(block); break;
                default: counter.block<uint64_t>(block); break;
            }
            return true;
        });
        return counter.result(layout.repeat);
    } catch (const std::bad_alloc&) {
        return {};
    }
}

}  // namespace numsan
