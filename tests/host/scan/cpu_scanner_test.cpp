// CpuScanner against a classification written independently here: values are built with ldexp and sorted by
// std::fpclassify.
#include "host/scan/cpu_scanner.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace numsan {
namespace {

// The value of a pattern, from the definitions of the formats and not from the masks that the scanner uses.
double value_of(uint64_t bits, DType type) {
    const DTypeInfo& t = info(type);
    if (type == DType::Float8E8M0Fnu) return bits == 0xff ? std::nan("") : std::ldexp(1.0, int(bits) - 127);
    const int width = t.lane_bytes * 8;
    const bool negative = (bits >> (width - 1)) & 1;
    const int exponent = static_cast<int>((bits >> t.mantissa_bits) % (uint64_t(1) << t.exponent_bits));
    const uint64_t mantissa = bits % (uint64_t(1) << t.mantissa_bits);
    const int top = (1 << t.exponent_bits) - 1;
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    if (t.infinity == InfinityKind::IEEE && exponent == top) return mantissa ? nan : negative ? -inf : inf;
    if (t.infinity == InfinityKind::FN && (bits == 0x7f || bits == 0xff)) return nan;
    if (t.infinity == InfinityKind::FNUZ && bits == 0x80) return nan;
    const double significand = static_cast<double>(mantissa) * std::ldexp(1.0, -t.mantissa_bits) + (exponent ? 1 : 0);
    const double magnitude = std::ldexp(significand, (exponent ? exponent : 1) - t.bias);
    return negative ? -magnitude : magnitude;
}

bool is_subnormal(double v, DType type) {
    return type != DType::Float8E8M0Fnu && v != 0 && std::fabs(v) < std::ldexp(1.0, 1 - info(type).bias);
}

struct Lanes {
    DType type;
    std::vector<unsigned char> bytes;
    Lanes(DType t, int64_t lanes) : type(t), bytes(static_cast<size_t>(lanes) * info(t).lane_bytes) {}
    void set(int64_t i, uint64_t bits) {
        std::memcpy(&bytes[size_t(i) * info(type).lane_bytes], &bits, info(type).lane_bytes);
    }
};

uint64_t lane_at(const void* data, int64_t lane, DType type) {
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const unsigned char*>(data) + lane * info(type).lane_bytes, info(type).lane_bytes);
    return bits;
}

struct Shaped {
    std::vector<int64_t> sizes, strides;
    TensorView view{};
    Shaped(const void* data, DType type, std::vector<int64_t> sz, std::vector<int64_t> st) : sizes(sz), strides(st) {
        view.data = data;
        view.sizes = sizes.data();
        view.strides = strides.data();
        view.ndim = static_cast<int16_t>(sizes.size());
        view.dtype = type;
        view.numel = 1;
        for (int64_t s : sizes) view.numel *= s;
    }
    Shaped(const Shaped&) = delete;
};

// Every element in row-major order, by division: no odometer.
template <class F>
void for_each_lane(const TensorView& t, F f) {
    for (int64_t index = 0; index < t.numel; ++index) {
        int64_t rest = index, offset = 0;
        for (int d = t.ndim - 1; d >= 0; --d) {
            offset += rest % t.sizes[d] * t.strides[d];
            rest /= t.sizes[d];
        }
        for (int lane = 0; lane < info(t.dtype).lanes; ++lane) {
            f(index, lane_at(t.data, offset * info(t.dtype).lanes + lane, t.dtype));
        }
    }
}

void expect_agreement(const TensorView& t, const std::string& what) {
    SCOPED_TRACE(what + " " + info(t.dtype).name);
    Health e{};
    e.elements = t.numel;
    e.first_bad = -1;
    uint64_t largest = 0, smallest = ~uint64_t(0);
    bool any_finite = false;
    const uint64_t sign = uint64_t(1) << (info(t.dtype).lane_bytes * 8 - 1);
    for_each_lane(t, [&](int64_t index, uint64_t bits) {
        const double v = value_of(bits, t.dtype);
        const uint64_t magnitude = t.dtype == DType::Float8E8M0Fnu ? bits : bits & (sign - 1);
        largest = std::max(largest, magnitude);
        if (magnitude) smallest = std::min(smallest, magnitude);
        KindSet kind = 0;
        switch (std::fpclassify(v)) {
            case FP_NAN: kind = kNaN, ++e.nan; break;
            case FP_INFINITE: v > 0 ? (kind = kPosInf, ++e.pos_inf) : (kind = kNegInf, ++e.neg_inf); break;
            case FP_ZERO: ++e.zero; break;
            default: e.subnormal += is_subnormal(v, t.dtype); break;
        }
        if (kind) {
            if (e.first_bad < 0) e.first_bad = index, e.first_bad_bits = bits;
            if (e.first_bad == index) e.first_bad_kind = static_cast<KindSet>(e.first_bad_kind | kind);
            return;
        }
        ++e.finite;
        e.absmax = std::max(e.absmax, std::fabs(v));
        if (v != 0 && (e.absmin == 0 || std::fabs(v) < e.absmin)) e.absmin = std::fabs(v);
        e.min = any_finite ? std::min(e.min, v) : v;
        e.max = any_finite ? std::max(e.max, v) : v;
        any_finite = true;
    });
    const CpuScanner scanner;
    const Range r = scanner.range(t);
    EXPECT_EQ(r.max_magnitude, largest);
    EXPECT_EQ(r.min_nonzero_magnitude, smallest);
    EXPECT_EQ(r.suspicious, e.nan + e.pos_inf + e.neg_inf > 0);
    const Health h = scanner.health(t);
    EXPECT_EQ(h.elements, e.elements);
    EXPECT_EQ(h.nan, e.nan);
    EXPECT_EQ(h.pos_inf, e.pos_inf);
    EXPECT_EQ(h.neg_inf, e.neg_inf);
    EXPECT_EQ(h.subnormal, e.subnormal);
    EXPECT_EQ(h.zero, e.zero);
    EXPECT_EQ(h.finite, e.finite);
    EXPECT_EQ(h.absmax, e.absmax);
    EXPECT_EQ(h.absmin, e.absmin);
    EXPECT_EQ(h.min, e.min);
    EXPECT_EQ(h.max, e.max);
    EXPECT_EQ(h.first_bad, e.first_bad);
    EXPECT_EQ(h.first_bad_bits, e.first_bad_bits);
    EXPECT_EQ(h.first_bad_kind, e.first_bad_kind);
}

std::vector<DType> all_types() {
    std::vector<DType> types;
    for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
    return types;
}

uint64_t boundary(DType type, std::mt19937_64& random) {
    const DTypeInfo& t = info(type);
    const uint64_t e = t.exponent_mask(), m = t.mantissa_mask();
    const uint64_t patterns[] = {0, 1,     m,     m + 1,       m + 2,           e - 1,
                                 e, e + 1, e | m, (e | m) - 1, e | (m + 1) / 2, random() & (e | m)};
    return patterns[random() % 12] | (random() % 2 ? t.sign_mask() : 0);
}

void fill(Lanes& lanes, std::mt19937_64& random, int rare) {
    const int64_t n = static_cast<int64_t>(lanes.bytes.size()) / info(lanes.type).lane_bytes;
    const uint64_t tame = info(lanes.type).magnitude_mask() >> 1;
    for (int64_t i = 0; i < n; ++i) {
        lanes.set(i, random() % uint64_t(rare) == 0 ? boundary(lanes.type, random) : (random() & tame));
    }
}

TEST(CpuScanner, EveryPatternAlone) {
    for (DType type : all_types()) {
        if (info(type).lane_bytes > 2 || info(type).lanes > 1) continue;
        const CpuScanner scanner;
        Lanes lanes(type, 1);
        Shaped t(lanes.bytes.data(), type, {1}, {1});
        for (uint64_t bits = 0; bits < uint64_t(1) << (8 * info(type).lane_bytes); ++bits) {
            lanes.set(0, bits);
            const double v = value_of(bits, type);
            const Range r = scanner.range(t.view);
            const Health h = scanner.health(t.view);
            ASSERT_EQ(r.suspicious, !std::isfinite(v)) << info(type).name << " " << bits;
            ASSERT_EQ(h.nan, std::isnan(v)) << info(type).name << " " << bits;
            ASSERT_EQ(h.pos_inf, std::isinf(v) && v > 0) << info(type).name << " " << bits;
            ASSERT_EQ(h.neg_inf, std::isinf(v) && v < 0) << info(type).name << " " << bits;
            ASSERT_EQ(h.subnormal, std::isfinite(v) && is_subnormal(v, type)) << info(type).name << " " << bits;
            ASSERT_EQ(h.zero, v == 0) << info(type).name << " " << bits;
            ASSERT_EQ(h.max, std::isfinite(v) ? v : 0) << info(type).name << " " << bits;
            ASSERT_EQ(h.absmin, std::isfinite(v) ? std::fabs(v) : 0) << info(type).name << " " << bits;
            ASSERT_EQ(h.first_bad, std::isfinite(v) ? -1 : 0) << info(type).name << " " << bits;
        }
    }
}

TEST(CpuScanner, EveryPatternInsideALongRun) {
    for (DType type : all_types()) {
        if (info(type).lane_bytes > 2 || info(type).lanes > 1) continue;
        const CpuScanner scanner;
        Lanes lanes(type, 300);
        Shaped t(lanes.bytes.data(), type, {300}, {1});
        for (uint64_t bits = 0; bits < uint64_t(1) << (8 * info(type).lane_bytes); ++bits) {
            const int64_t at = static_cast<int64_t>(bits * 7 % 300);
            lanes.set(at, bits);
            ASSERT_EQ(scanner.range(t.view).suspicious, !std::isfinite(value_of(bits, type)))
                << info(type).name << " " << bits;
            lanes.set(at, 0);
        }
    }
}

TEST(CpuScanner, AllPatternsTogether) {
    for (DType type : all_types()) {
        if (info(type).lane_bytes > 2 || info(type).lanes > 1) continue;
        const int64_t n = int64_t(1) << (8 * info(type).lane_bytes);
        Lanes lanes(type, n);
        for (int64_t i = 0; i < n; ++i) lanes.set(i, static_cast<uint64_t>(i));
        expect_agreement(Shaped(lanes.bytes.data(), type, {n}, {1}).view, "all patterns");
    }
}

TEST(CpuScanner, PowersOfTwoWithoutZeroAreHealthy) {
    std::vector<unsigned char> bytes(256);
    for (int i = 0; i < 256; ++i) bytes[static_cast<size_t>(i)] = static_cast<unsigned char>(i);
    const CpuScanner scanner;
    const Shaped numbers(bytes.data(), DType::Float8E8M0Fnu, {255}, {1});
    EXPECT_FALSE(scanner.range(numbers.view).suspicious);
    const Health healthy = scanner.health(numbers.view);
    EXPECT_EQ(healthy.finite, 255);
    EXPECT_EQ(healthy.zero + healthy.subnormal + healthy.nan + healthy.pos_inf + healthy.neg_inf, 0);
    EXPECT_EQ(healthy.absmin, std::ldexp(1.0, -127));
    EXPECT_EQ(healthy.min, std::ldexp(1.0, -127));
    EXPECT_EQ(healthy.absmax, std::ldexp(1.0, 127));
    const Shaped with_nan(bytes.data(), DType::Float8E8M0Fnu, {256}, {1});
    EXPECT_TRUE(scanner.range(with_nan.view).suspicious);
    EXPECT_EQ(scanner.kinds(with_nan.view), kNaN);
    EXPECT_EQ(scanner.health(with_nan.view).first_bad, 255);
}

TEST(CpuScanner, EveryLengthOfRun) {
    std::mt19937_64 random(1);
    for (DType type : all_types()) {
        for (int64_t n = 0; n < 530; n += n < 70 ? 1 : 23) {
            for (int rare : {1, 50, 100000}) {
                Lanes lanes(type, n * info(type).lanes + 1);
                fill(lanes, random, rare);
                expect_agreement(Shaped(lanes.bytes.data(), type, {n}, {1}).view, "run of " + std::to_string(n));
            }
        }
    }
}

TEST(CpuScanner, Layouts) {
    const struct {
        const char* name;
        std::vector<int64_t> sizes, strides;
    } cases[] = {
        {"scalar", {}, {}},
        {"empty", {3, 0, 2}, {2, 2, 1}},
        {"row major", {4, 5, 6}, {30, 6, 1}},
        {"transposed", {6, 5, 4}, {1, 6, 30}},
        {"permuted", {5, 4, 6}, {6, 30, 1}},
        {"channels last", {2, 3, 4, 5}, {60, 1, 15, 3}},
        {"column", {40}, {11}},
        {"slice of rows", {7, 70}, {90, 1}},
        {"transposed slice", {70, 7}, {1, 90}},
        {"every second", {6, 8}, {32, 2}},
        {"broadcast outer", {9, 50}, {0, 1}},
        {"broadcast inner", {50, 9}, {1, 0}},
        {"broadcast middle", {4, 3, 5}, {5, 0, 1}},
        {"broadcast all", {4, 3}, {0, 0}},
        {"overlapping", {20, 8}, {1, 1}},
        {"sliding window", {20, 8}, {3, 1}},
        {"ones with odd strides", {1, 5, 1, 3}, {77, 3, 0, 1}},
        {"gaps at every level", {3, 2, 3, 2}, {200, 70, 20, 5}},
        {"many dimensions", {2, 1, 2, 2, 2, 1, 2, 2, 2}, {300, 9, 100, 50, 20, 3, 9, 4, 1}},
    };
    std::mt19937_64 random(2);
    for (DType type : all_types()) {
        for (const auto& c : cases) {
            for (int rare : {2, 60, 100000}) {
                Lanes lanes(type, 1000 * info(type).lanes);
                fill(lanes, random, rare);
                expect_agreement(Shaped(lanes.bytes.data(), type, c.sizes, c.strides).view, c.name);
            }
        }
    }
}

TEST(CpuScanner, OfWhatIsKnownToBeContiguousNoStrideIsRead) {
    float values[8] = {1, 1, 1, 1, 1, INFINITY, 1, 1};
    Shaped two_by_three(values, DType::Float32, {2, 3}, {100, 1});  // made up: only the flag says where the rest is
    two_by_three.view.flags = kScannable | kContiguous;
    EXPECT_TRUE(CpuScanner().range(two_by_three.view).suspicious);
    values[5] = 1;
    values[6] = INFINITY;
    EXPECT_FALSE(CpuScanner().range(two_by_three.view).suspicious) << "behind its last element";
}

TEST(CpuScanner, AnyAlignment) {
    std::mt19937_64 random(3);
    for (DType type : all_types()) {
        for (int offset = 1; offset < 8; ++offset) {
            Lanes lanes(type, 600);
            fill(lanes, random, 40);
            expect_agreement(Shaped(lanes.bytes.data() + offset, type, {200}, {1}).view, "offset");
            expect_agreement(Shaped(lanes.bytes.data() + offset, type, {9, 7}, {20, 2}).view, "offset, strided");
        }
    }
}

TEST(CpuScanner, NoDataIsEmpty) {
    const Shaped t(nullptr, DType::Float32, {4}, {1});
    EXPECT_FALSE(CpuScanner().range(t.view).suspicious);
    EXPECT_EQ(CpuScanner().range(t.view).min_nonzero_magnitude, ~uint64_t(0));
    EXPECT_EQ(CpuScanner().health(t.view).elements, 0);
    EXPECT_EQ(CpuScanner().health(t.view).first_bad, -1);
}

class Pages {
  public:
    explicit Pages(size_t count, int protection, int extra = 0) : bytes_(count * page()) {
        void* mapped = mmap(nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | extra, -1, 0);
        data_ = mapped == MAP_FAILED ? nullptr : static_cast<unsigned char*>(mapped);
    }
    ~Pages() {
        if (data_ != nullptr) munmap(data_, bytes_);
    }
    Pages(const Pages&) = delete;
    static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
    unsigned char* data() { return data_; }

  private:
    unsigned char* data_;
    size_t bytes_;
};

TEST(CpuScanner, ReadsNothingOutside) {
    Pages pages(3, PROT_NONE);
    ASSERT_NE(pages.data(), nullptr);
    unsigned char* first = pages.data() + Pages::page();
    ASSERT_EQ(mprotect(first, Pages::page(), PROT_READ | PROT_WRITE), 0);
    for (DType type : all_types()) {
        const int64_t fits = static_cast<int64_t>(Pages::page() / info(type).element_bytes());
        for (int64_t n = 1; n <= fits; n += n < 100 ? 1 : 61) {
            expect_agreement(Shaped(first, type, {n}, {1}).view, "after a guard");
            const unsigned char* last = first + Pages::page() - static_cast<size_t>(n) * info(type).element_bytes();
            expect_agreement(Shaped(last, type, {n}, {1}).view, "before a guard");
        }
    }
}

TEST(CpuScanner, ReadsNoGap) {
    Pages pages(9, PROT_NONE);
    ASSERT_NE(pages.data(), nullptr);
    for (size_t i = 1; i < 9; i += 2) {
        ASSERT_EQ(mprotect(pages.data() + i * Pages::page(), Pages::page(), PROT_READ | PROT_WRITE), 0);
    }
    for (DType type : all_types()) {
        const int64_t fits = static_cast<int64_t>(Pages::page() / info(type).element_bytes());
        const unsigned char* first = pages.data() + Pages::page();
        expect_agreement(Shaped(first, type, {4, fits}, {2 * fits, 1}).view, "whole pages");
        expect_agreement(Shaped(first, type, {fits, 4}, {1, 2 * fits}).view, "whole pages, transposed");
        expect_agreement(Shaped(first, type, {4}, {2 * fits}).view, "first of each page");
        const unsigned char* last = first + Pages::page() - info(type).element_bytes();
        expect_agreement(Shaped(last, type, {4, 1}, {2 * fits, 1}).view, "last of each page");
    }
}

TEST(CpuScanner, MoreThanTwoToThe31Elements) {
    const int64_t n = (int64_t(1) << 31) + 5000;
    Pages pages(static_cast<size_t>(n) / Pages::page() + 1, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    ASSERT_NE(pages.data(), nullptr);
    const CpuScanner scanner;
    const Shaped t(pages.data(), DType::Float8E4M3Fn, {n}, {1});
    EXPECT_FALSE(scanner.range(t.view).suspicious);
    pages.data()[n - 1] = 0x7f;
    EXPECT_TRUE(scanner.range(t.view).suspicious);
    // Far apart and broadcast, for the exact pass: counts and index beyond 32 bits without reading as much.
    const Shaped far(pages.data(), DType::Float8E4M3Fn, {3, 2}, {0, n - 1});
    EXPECT_EQ(scanner.health(far.view).first_bad, 1);
    EXPECT_EQ(scanner.health(far.view).nan, 3);
    const Shaped wide(pages.data() + n - 2, DType::Float8E4M3Fn, {2, n}, {1, 0});
    EXPECT_EQ(scanner.health(wide.view).elements, 2 * n);
    EXPECT_EQ(scanner.health(wide.view).nan, n);
    EXPECT_EQ(scanner.health(wide.view).first_bad, n);
}

}  // namespace
}  // namespace numsan

TEST(CpuScanner, KindsAreThoseOfTheExactPass) {
    const numsan::CpuScanner scanner;
    std::mt19937 random(7);
    for (const numsan::DType dtype : {numsan::DType::Float16, numsan::DType::BFloat16, numsan::DType::Float32,
                                      numsan::DType::Float64, numsan::DType::Float8E5M2, numsan::DType::Float8E4M3Fn}) {
        const numsan::DTypeInfo& type = numsan::info(dtype);
        const uint64_t patterns[] = {0,
                                     1,
                                     type.exponent_mask(),
                                     type.exponent_mask() | type.sign_mask(),
                                     type.exponent_mask() | 1,
                                     type.exponent_mask() - 1};
        for (int round = 0; round < 300; ++round) {
            const int64_t elements = 1 + static_cast<int64_t>(random() % 700);
            std::vector<unsigned char> bytes(static_cast<size_t>(elements) * type.lane_bytes + 1);
            unsigned char* data = bytes.data() + round % 2;
            for (int64_t i = 0; i < elements; ++i) {
                const uint64_t bits = random() % 400 == 0 ? patterns[random() % 6] : 1;
                std::memcpy(data + i * type.lane_bytes, &bits, type.lane_bytes);
            }
            const int64_t sizes[] = {elements};
            const int64_t strides[] = {1};
            numsan::TensorView view{};
            view.data = data;
            view.numel = elements;
            view.sizes = sizes;
            view.strides = strides;
            view.ndim = 1;
            view.dtype = dtype;
            ASSERT_EQ(scanner.kinds(view), scanner.health(view).kinds())
                << type.name << ", " << elements << " elements";
        }
    }
}

TEST(CpuScanner, SharedPassAgreesWithTheSingleOne) {
    static int threads = 0;
    // The parts one after another: who runs them does not matter to the result.
    const auto share = [](void (*work)(void* data, int part, int parts), void* data) {
        for (int part = 0; part < threads; ++part) work(data, part, threads);
        return threads > 0;
    };
    const numsan::CpuScanner scanner;
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        const int64_t sizes[] = {1 + static_cast<int64_t>(random() % 300), 1 + static_cast<int64_t>(random() % 900)};
        const bool columns_first = round % 3 == 0;
        const int64_t strides[] = {columns_first ? 1 : sizes[1], columns_first ? sizes[0] : 1};
        std::vector<uint32_t> words(static_cast<size_t>(sizes[0] * sizes[1]));
        for (uint32_t& word : words) word = 0x3f000000u + random() % 4096;
        if (round % 2 == 0) words[random() % words.size()] = 0x7fc00000u;
        numsan::TensorView view{};
        view.data = words.data();
        view.numel = sizes[0] * sizes[1];
        view.sizes = sizes;
        view.strides = strides;
        view.ndim = 2;
        view.dtype = numsan::DType::Float32;
        const numsan::Range alone = scanner.range(view);
        for (const int count : {0, 1, 2, 7, 64, 100}) {
            threads = count;
            const numsan::Range together = scanner.shared_range(view, share);
            EXPECT_EQ(together.suspicious, alone.suspicious) << count << " threads";
            EXPECT_EQ(together.max_magnitude, alone.max_magnitude) << count << " threads";
            EXPECT_EQ(together.min_nonzero_magnitude, alone.min_nonzero_magnitude) << count << " threads";
        }
    }
}
