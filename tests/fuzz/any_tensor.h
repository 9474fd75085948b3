// Tensors of any element type, sizes, strides, offset and bytes, made of a fuzzer's input, and what is true of them by
// a loop over their logical elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "host/base/health.h"
#include "host/base/tensor_view.h"

namespace numsan::fuzz {

constexpr int64_t kMostElements = 4096;
constexpr int64_t kMostBytes = int64_t(1) << 18;

/// Bytes of the input one by one, then zeros.
class Bytes {
  public:
    explicit Bytes(std::string_view input) : input_(input) {}
    uint8_t next() {
        const uint8_t byte = input_.empty() ? 0 : static_cast<uint8_t>(input_.front());
        if (!input_.empty()) input_.remove_prefix(1);
        return byte;
    }
    std::string_view rest() const { return input_; }

  private:
    std::string_view input_;
};

struct Tensor {
    DType dtype{};
    std::vector<int64_t> sizes, strides;
    int64_t elements = 1;
    int64_t first = 0;                  ///< bytes from the lowest address to the first logical element
    std::vector<unsigned char> memory;  ///< not aligned: starts `shift` bytes before the lowest address
    size_t shift = 0;

    const unsigned char* data() const { return memory.data() + shift + first; }

    TensorView view() const {
        TensorView out{};
        out.data = data();
        out.sizes = sizes.data();
        out.strides = strides.data();
        out.ndim = static_cast<int16_t>(sizes.size());
        out.dtype = dtype;
        out.numel = elements;
        return out;
    }
};

/// Values at which classes begin and end.
inline uint64_t border(const DTypeInfo& type, uint8_t choice) {
    const uint64_t infinity = type.exponent_mask(), normal = type.mantissa_mask() + 1;
    const uint64_t magnitudes[] = {
        0, 1, normal - 1, normal, infinity - 1, infinity, infinity + 1, type.magnitude_mask()};
    return magnitudes[choice % 8] | (choice & 8 ? type.sign_mask() : 0);
}

inline void fill(Tensor& tensor, bool borders, std::string_view pattern) {
    if (pattern.empty()) return;
    unsigned char* const start = tensor.memory.data() + tensor.shift;
    const size_t size = tensor.memory.size() - tensor.shift, lane = info(tensor.dtype).lane_bytes;
    for (size_t at = 0; at + lane <= size; at += lane) {
        const uint64_t bits = border(info(tensor.dtype), static_cast<uint8_t>(pattern[at / lane % pattern.size()]));
        for (size_t i = 0; i < lane; ++i) {
            start[at + i] = borders ? static_cast<unsigned char>(bits >> (8 * i))
                                    : static_cast<unsigned char>(pattern[(at + i) % pattern.size()]);
        }
    }
}

/// Whose memory a tensor is made up for: what a device's library allocates is aligned to its lanes and has no negative
/// strides, so most inputs respect that.
enum class Place { Host, Device };

/// One dimension is a byte of size and a byte of stride. False when there are too many elements or bytes. `pattern`:
/// what fills it; without, what is left of `bytes`.
inline bool build(Bytes& bytes, Tensor& tensor, Place place = Place::Host, std::string_view pattern = {}) {
    const bool device = place == Place::Device;
    tensor.dtype = static_cast<DType>(bytes.next() % kDTypeCount);
    const uint8_t flags = bytes.next();
    const bool dense = flags & 1, borders = flags & 2;
    tensor.shift = (flags >> 2) % 8;
    if (device && tensor.shift != 7) tensor.shift *= info(tensor.dtype).lane_bytes;
    const int ndim = (flags >> 5) % 8;
    int64_t lowest = 0, highest = 0, volume = 1;
    for (int d = 0; d < ndim; ++d) {
        const uint8_t size = bytes.next(), stride = bytes.next();
        tensor.sizes.push_back(size < 200 ? size % 9 : (size - 199) * 37);
        tensor.strides.push_back(device && stride != 0xff ? stride % 128 : static_cast<int8_t>(stride));
        if (tensor.sizes[size_t(d)] == 1) tensor.strides[size_t(d)] *= int64_t(1) << 56;  // means nothing
        tensor.elements *= tensor.sizes[size_t(d)];
        volume *= std::max<int64_t>(tensor.sizes[size_t(d)], 1);
        if (volume > kMostElements) return false;
    }
    int64_t expected = 1;
    for (size_t d = tensor.sizes.size(); dense && d-- > 0; expected *= tensor.sizes[d]) {
        if (tensor.sizes[d] != 1) tensor.strides[d] = expected;
    }
    for (size_t d = 0; d < tensor.sizes.size(); ++d) {
        if (tensor.sizes[d] < 2) continue;
        const int64_t reach = tensor.strides[d] * (tensor.sizes[d] - 1);
        (reach < 0 ? lowest : highest) += reach;
    }
    const int64_t element = info(tensor.dtype).element_bytes();
    tensor.first = -lowest * element;
    const int64_t size = tensor.elements == 0 ? 0 : (highest - lowest + 1) * element;
    if (size > kMostBytes) return false;
    if (tensor.elements == 0) tensor.first = 0;
    tensor.memory.resize(tensor.shift + static_cast<size_t>(size));
    tensor.memory.shrink_to_fit();
    fill(tensor, borders, device ? pattern : bytes.rest());
    return true;
}

/// The value of a pattern by the definition of its format.
inline double value_of(uint64_t bits, const DTypeInfo& type) {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    if (!type.has_zero()) return bits == 0xff ? nan : std::ldexp(1.0, static_cast<int>(bits) - type.bias);
    const uint64_t sign = uint64_t(1) << (8 * type.lane_bytes - 1);
    const uint64_t fraction = bits % (uint64_t(1) << type.mantissa_bits);
    const int exponent = static_cast<int>((bits & (sign - 1)) >> type.mantissa_bits);
    const bool ones = exponent == (1 << type.exponent_bits) - 1;
    if (type.infinity == InfinityKind::FNUZ && bits == sign) return nan;
    if (type.infinity == InfinityKind::FN && (bits & (sign - 1)) == sign - 1) return nan;
    const double factor = bits & sign ? -1 : 1;
    if (type.infinity == InfinityKind::IEEE && ones) return fraction ? nan : factor * infinity;
    const double significand = std::ldexp(static_cast<double>(fraction), -type.mantissa_bits) + (exponent ? 1 : 0);
    return factor * std::ldexp(significand, std::max(exponent, 1) - type.bias);
}

struct Expected {
    Health health{};
    Range range{0, ~uint64_t(0), false};
};

inline void add_lane(uint64_t bits, int64_t index, const DTypeInfo& type, Expected& out) {
    Health& h = out.health;
    const uint64_t sign = type.has_zero() ? uint64_t(1) << (8 * type.lane_bytes - 1) : 0;
    const uint64_t magnitude = bits & ~sign;
    out.range.max_magnitude = std::max(out.range.max_magnitude, magnitude);
    if (magnitude != 0) out.range.min_nonzero_magnitude = std::min(out.range.min_nonzero_magnitude, magnitude);
    const double value = value_of(bits, type), size = std::fabs(value);
    if (!std::isfinite(value)) {
        const KindSet kind = std::isnan(value) ? kNaN : value > 0 ? kPosInf : kNegInf;
        ++(kind == kNaN ? h.nan : kind == kPosInf ? h.pos_inf : h.neg_inf);
        if (h.first_bad < 0) h.first_bad = index, h.first_bad_bits = bits;
        if (h.first_bad == index) h.first_bad_kind = static_cast<KindSet>(h.first_bad_kind | kind);
        out.range.suspicious = true;
        return;
    }
    h.min = h.finite ? std::min(h.min, value) : value;
    h.max = h.finite ? std::max(h.max, value) : value;
    h.absmax = std::max(h.absmax, size);
    if (value == 0)
        ++h.zero;
    else
        h.absmin = h.absmin == 0 ? size : std::min(h.absmin, size);
    if (type.has_zero() && value != 0 && size < std::ldexp(1.0, 1 - type.bias)) ++h.subnormal;
    ++h.finite;
}

/// Of logical element `index`, in elements from the first one.
inline int64_t offset_of(const Tensor& tensor, int64_t index) {
    int64_t offset = 0;
    for (size_t d = tensor.sizes.size(); d-- > 0; index /= tensor.sizes[d]) {
        const int64_t at = index % tensor.sizes[d];
        offset += at != 0 ? at * tensor.strides[d] : 0;  // the stride of a single one means nothing
    }
    return offset;
}

inline Expected expected_of(const Tensor& tensor) {
    const DTypeInfo& type = info(tensor.dtype);
    Expected out;
    out.health.first_bad = -1;
    out.health.elements = tensor.elements;
    for (int64_t index = 0; index < tensor.elements; ++index) {
        const int64_t offset = offset_of(tensor, index);
        for (int lane = 0; lane < type.lanes; ++lane) {
            uint64_t bits = 0;
            std::memcpy(&bits, tensor.data() + offset * type.element_bytes() + lane * type.lane_bytes, type.lane_bytes);
            add_lane(bits, index, type, out);
        }
    }
    return out;
}

}  // namespace numsan::fuzz
