// A tensor of several chunks, whatever their size, with one value that counts: in each lane of each load that a thread
// has in flight, on a full trip and on what remains of a chunk, it is found.
#include <gtest/gtest.h>

#include <iterator>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

class EveryPlace : public testing::TestWithParam<DType> {
  protected:
    static constexpr uint32_t kUsualLog2 = 11;
    static constexpr int64_t kTrip = kBlockThreads * kUnroll;
    /// A chunk of two trips, one of what is not a trip for any thread, and some bytes.
    static constexpr int64_t kPackets = 2 * kTrip + (kUnroll - 1) * kBlockThreads - 24;
    static constexpr int64_t kLoads = 2 * kUnroll - 1;  ///< of a trip, and of what remains
    static constexpr int64_t kOffset = 1;               ///< elements: the first packet is not the tensor's own

    EveryPlace()
        : type(info(GetParam())),
          elements((kPackets * 16 + 40) / type.element_bytes()),
          memory(GetParam(), (elements + kOffset) * type.lanes),
          tensor(memory.data() + kOffset * type.element_bytes(), GetParam(), elements) {}

    /// With its lowest bit set: what a lane takes of its neighbours is seen.
    uint64_t usual_value() const { return type.has_zero() ? one(type) | 1 : 101; }
    /// The lane number `lane` of the packet `packet` of the tensor's own.
    int64_t place(int64_t packet, int64_t lane) const {
        const int64_t start = kOffset * type.element_bytes(), head = (16 - start % 16) % 16;
        return (start + head + 16 * packet) / type.lane_bytes + lane;
    }
    /// The packet of a load: of the first chunk's two trips in turns, of the rest from kUnroll on.
    static int64_t packet(int64_t load, int64_t lane) {
        const int64_t trip = load < int64_t(kUnroll) ? lane % 2 : 2;
        return trip * kTrip + load % int64_t(kUnroll) * kBlockThreads + 5 + 13 * lane;
    }
    /// In chunks of two trips and in turns of the other sizes.
    void expect_found(int64_t changed, uint64_t value, uint64_t usual) {
        memory.set(changed, value);
        ++seed;
        constexpr uint32_t kOthers[] = {kMinGapsChunkLog2, kMinChunkLog2, kMaxChunkLog2};
        for (const uint32_t log2 : {kUsualLog2, kOthers[seed % std::size(kOthers)]})
            EXPECT_EQ(scan_and_compare(tensor.view, Grid{3, 1, seed}, log2), "")
                << "lane " << changed << ", 2^" << log2;
        memory.set(changed, usual);
    }

    const DTypeInfo type;
    const int64_t elements;
    Lanes memory;
    Shaped tensor;
    uint32_t seed = 0;
};

TEST_P(EveryPlace, OneValueThatIsNotFinite) {
    const uint64_t usual = usual_value();
    const uint64_t least = type.infinity == InfinityKind::IEEE ? type.exponent_mask() : nan_of(type);
    memory.fill(usual);
    const int64_t lanes = 16 / type.lane_bytes;
    for (int64_t load = 0; load < kLoads; ++load) {
        for (int64_t lane = 0; lane < lanes; ++lane)
            expect_found(place(packet(load, lane), lane), (load + lane) % 2 == 0 ? nan_of(type) : least, usual);
    }
}

TEST_P(EveryPlace, TheSmallestAndTheLargestNumber) {
    const uint64_t usual = usual_value();
    memory.fill(usual);
    const int64_t lanes = 16 / type.lane_bytes;
    for (int64_t load = 0; load < kLoads; ++load) {
        for (int64_t lane = load % 2; lane < lanes; lane += 2) {
            const int64_t changed = place(packet(load, lane), lane);
            expect_found(changed, type.has_zero() ? 1 : 0, usual);
            expect_found(changed, usual + 1, usual);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPlace, testing::ValuesIn(all_types()), type_name);

}  // namespace
}  // namespace numsan::gpu
