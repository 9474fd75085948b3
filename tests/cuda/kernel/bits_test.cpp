// The quick pass's registers alone: every pattern of the narrow types in every place of a packet, in both forms.
#include "cuda/kernel/bits.cuh"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

template <LaneKind kKind_, bool kPacked_, DType... kTypes>
struct Form {
    static constexpr LaneKind kKind = kKind_;
    static constexpr bool kPacked = kPacked_;
    static std::vector<DType> types() { return {kTypes...}; }
};

template <class F>
class Bits : public testing::Test {};
using Forms = testing::Types<Form<LaneKind::Bits8, true, DType::Float8E4M3Fn, DType::Float8E5M2>,
                             Form<LaneKind::Bits8, false, DType::Float8E4M3Fn, DType::Float8E5M2>,
                             Form<LaneKind::Bits8Fnuz, true, DType::Float8E4M3Fnuz, DType::Float8E5M2Fnuz>,
                             Form<LaneKind::Bits8Fnuz, false, DType::Float8E4M3Fnuz, DType::Float8E5M2Fnuz>,
                             Form<LaneKind::Bits8Unsigned, true, DType::Float8E8M0Fnu>,
                             Form<LaneKind::Bits8Unsigned, false, DType::Float8E8M0Fnu>,
                             Form<LaneKind::Bits16, true, DType::Float16, DType::BFloat16, DType::Complex32>,
                             Form<LaneKind::Bits16, false, DType::Float16, DType::BFloat16, DType::Complex32>>;
TYPED_TEST_SUITE(Bits, Forms);

bool nonfinite(uint64_t bits, const DTypeInfo& t) {
    const uint64_t m = bits & ~t.sign_mask();
    if (t.infinity == InfinityKind::FNUZ) return bits == 0x80;
    return t.infinity == InfinityKind::FN ? m == 0x7f : (m & t.exponent_mask()) == t.exponent_mask();
}

TYPED_TEST(Bits, EveryPatternInEveryPlaceOfAPacket) {
    for (const DType dtype : TypeParam::types()) {
        const DTypeInfo& t = info(dtype);
        ASSERT_EQ(lane_kind(dtype), TypeParam::kKind);
        const uint64_t patterns = uint64_t(1) << (8 * t.lane_bytes);
        for (const uint64_t other : {uint64_t(0), one(t), uint64_t(1)}) {
            for (int at = 0; at < 16 / t.lane_bytes; ++at) {
                Lanes lanes(dtype, 16 / t.lane_bytes);
                lanes.fill(other);
                for (uint64_t bits = 0; bits < patterns; ++bits) {
                    lanes.set(at, bits);
                    RangeTally<TypeParam::kKind, TypeParam::kPacked> tally;
                    add_packet(tally, load_packet(lanes.data()));
                    const RangeWords words = tally.words();
                    const uint64_t m = bits & ~t.sign_mask();
                    const uint64_t least = other == 0 ? m : m == 0 ? other : std::min(m, other);
                    ASSERT_EQ(words.largest, std::max(m, other)) << at << ' ' << bits;
                    ASSERT_EQ(words.smallest_inverted, least == 0 ? 0 : ~(least - 1)) << at << ' ' << bits;
                    ASSERT_EQ(has_nonfinite(words, dtype), nonfinite(bits, t)) << at << ' ' << bits;
                }
            }
        }
    }
}

}  // namespace
}  // namespace numsan::gpu
