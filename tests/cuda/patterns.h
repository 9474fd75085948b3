// Bit patterns of an element type, and memory filled with them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "host/base/dtype.h"

namespace numsan::gpu {

/// Memory of exactly `lanes` real lanes, so that the address sanitizer sees a read outside; starts at a multiple of 16.
class Lanes {
  public:
    Lanes(DType dtype, int64_t lanes) : type_(info(dtype)), count_(lanes) {
        bytes_ = static_cast<unsigned char*>(::operator new(size_t(lanes) * type_.lane_bytes, std::align_val_t(16)));
        fill(0);
    }
    ~Lanes() { ::operator delete(bytes_, std::align_val_t(16)); }
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;

    unsigned char* data() { return bytes_; }
    int64_t count() const { return count_; }
    void set(int64_t lane, uint64_t bits) { std::memcpy(bytes_ + lane * type_.lane_bytes, &bits, type_.lane_bytes); }
    void fill(uint64_t bits) {
        for (int64_t i = 0; i < count_; ++i) set(i, bits);
    }

  private:
    DTypeInfo type_;
    int64_t count_;
    unsigned char* bytes_;
};

/// All that the kernels read.
inline std::vector<DType> all_types() {
    std::vector<DType> types;
    for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
    return types;
}

inline std::vector<DType> narrow_types() {
    std::vector<DType> types;
    for (const DType t : all_types()) {
        if (info(t).lane_bytes <= 2) types.push_back(t);
    }
    return types;
}

/// Names a test of INSTANTIATE_TEST_SUITE_P by its type.
inline constexpr auto type_name = [](const auto& instance) -> std::string { return info(instance.param).name; };

inline uint64_t one(const DTypeInfo& t) { return uint64_t(t.bias) << t.mantissa_bits; }

inline uint64_t nan_of(const DTypeInfo& t) {
    return t.infinity == InfinityKind::FNUZ ? t.sign_mask() : t.magnitude_mask();
}

/// Patterns at the borders of the classes, of both signs.
inline std::vector<uint64_t> edges(const DTypeInfo& t) {
    if (!t.has_zero()) return {0, 1, 2, 0x7e, 0x7f, 0x80, 0x81, 0xfd, 0xfe, 0xff};
    const uint64_t normal = uint64_t(1) << t.mantissa_bits, top = t.exponent_mask();
    std::vector<uint64_t> all;
    for (uint64_t m : {uint64_t(0), uint64_t(1), normal - 1, normal, normal + 1, one(t), top - 1, top, top + 1,
                       top | (normal >> 1), t.magnitude_mask() - 1, t.magnitude_mask()}) {
        all.push_back(m);
        all.push_back(m | t.sign_mask());
    }
    return all;
}

/// A random finite pattern.
inline uint64_t finite(const DTypeInfo& t, std::mt19937_64& random) {
    for (;;) {
        const uint64_t sign = t.has_zero() ? t.sign_mask() : 0;
        const uint64_t bits = random() & (sign | t.magnitude_mask()), m = bits & t.magnitude_mask();
        if (t.infinity == InfinityKind::IEEE && m >= t.exponent_mask()) continue;
        if ((t.infinity == InfinityKind::FN || t.infinity == InfinityKind::FNU) && m == t.magnitude_mask()) continue;
        if (t.infinity == InfinityKind::FNUZ && bits == t.sign_mask()) continue;
        return bits;
    }
}

/// Finite lanes, and with `bad` a few of the borders of the classes among them.
inline void fill(Lanes& lanes, DType dtype, bool bad, std::mt19937_64& random) {
    const DTypeInfo& type = info(dtype);
    const std::vector<uint64_t> borders = edges(type);
    for (int64_t i = 0; i < lanes.count(); ++i) lanes.set(i, finite(type, random));
    for (int n = 0; bad && n < 5; ++n) {
        lanes.set(static_cast<int64_t>(random() % uint64_t(lanes.count())), borders[random() % borders.size()]);
        lanes.set(static_cast<int64_t>(random() % uint64_t(lanes.count())), nan_of(type));
    }
}

}  // namespace numsan::gpu
