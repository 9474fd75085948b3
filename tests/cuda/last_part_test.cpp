// What a bad output leads to when its last part is there, whichever block that completes it. nvcc makes the code for it
// twice: for a block that comes from the quick pass, and for one that has just looked at its own bad part.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

constexpr uint64_t kOneSecond = 1'000'000'000;
constexpr int64_t kOutputBytes = 40016;  // three chunks of the smallest size
constexpr uint32_t kChunks = 3;
constexpr int kOperands = 2;
constexpr int64_t kOperandBytes = 2416;  // of each

/// What the block has that completes the output.
enum class Last { AllOfIt, FinePart, BadPart };

/// A bad output and its operands, by one block that does all, or with a look. Blocks run one after the other.
struct Completed : testing::TestWithParam<std::tuple<Last, bool>> {
    Words words{8};
    HitReader reader{words.ring(), words.capacity()};
    BatchFiller filler;
    ScanHeader header = words.header();

    Last last() const { return std::get<0>(GetParam()); }
    bool looks() const { return std::get<1>(GetParam()); }

    /// Block 0 has the output's end. Of pairs the first lane is bad.
    void make_bad(Lanes& output, DType dtype, uint64_t bits) {
        output.set(last() == Last::FinePart ? output.count() - info(dtype).lanes : 0, bits);
    }

    static Shaped whole(Lanes& lanes, DType dtype) {
        return Shaped(lanes.data(), dtype, lanes.count() / info(dtype).lanes);
    }

    void scan(const TensorView& output, const TensorView& operand, uint8_t flags = 0) {
        filler.begin(header);
        const std::vector<TensorView> operands(kOperands, operand);
        const InputItems inputs = filler.add_inputs(operands.data(), kOperands);
        ASSERT_EQ(filler.add(output, 0, 0, flags, inputs), Admission::Added);
        ASSERT_TRUE(filler.close());
        ASSERT_EQ(filler.header().chunks, kChunks);
        filler.header().looks = looks() ? &words.looks : nullptr;
        filler.header().look_chunks = 2 * kChunks;
        run(filler, Grid{last() == Last::AllOfIt ? 1 : kChunks, 1, 0});
        EXPECT_TRUE(words.at_rest());
    }

    /// A float32 output with one bad lane.
    void scan_float(uint64_t bits, uint8_t flags = 0) {
        Lanes output(DType::Float32, kOutputBytes / 4), operand(DType::Float32, kOperandBytes / 4);
        make_bad(output, DType::Float32, bits);
        scan(whole(output, DType::Float32).view, whole(operand, DType::Float32).view, flags);
    }

    void owe_too_much() {
        words.state.paid_until[0] = words.state.paid_until[1] = nanoseconds() + kMostOwed + 60 * kOneSecond;
    }

    uint64_t pass_time() const {
        constexpr uint64_t kBytes = kOutputBytes + kOperands * kOperandBytes;
        return looks() ? kGridPassNanoseconds + kBytes / kGridBytesPerNanosecond
                       : kBlockPassNanoseconds + kBytes / kBlockBytesPerNanosecond;
    }
};

TEST_P(Completed, ABadOutputRaisesTheGateIfItIsMarked) {
    scan_float(0x7fc00000);
    EXPECT_EQ(words.raise, 0u);
    scan_float(0x7fc00000, kRaisesGate);
    EXPECT_EQ(words.raise, 1u);
    words.raise = 0;
    header.raise = nullptr;
    scan_float(0x7fc00000, kRaisesGate);
    EXPECT_EQ(words.raise, 0u);
}

TEST_P(Completed, APassIsPaidForByTheBytesOfAllItsTensors) {
    for (const DType dtype : all_types()) {
        for (const DType operand_dtype : {dtype, DType::Complex64}) {
            Lanes output(dtype, kOutputBytes / info(dtype).lane_bytes);
            Lanes operand(operand_dtype, kOperandBytes / info(operand_dtype).lane_bytes);
            make_bad(output, dtype, nan_of(info(dtype)));
            const uint64_t owed = nanoseconds() + kMostOwed - kOneSecond;  // what is owed already is added to
            words.state.paid_until[0] = owed;
            scan(whole(output, dtype).view, whole(operand, operand_dtype).view);
            EXPECT_EQ(words.state.paid_until[0], owed + pass_time() * kExactShare) << info(dtype).name;
            EXPECT_EQ(words.state.paid_until[1], 0u);
            EXPECT_EQ(words.take(reader).size(), 1u + kOperands);
        }
    }
}

TEST_P(Completed, APassForAnInfinityIsPaidForFromItsOwnAccount) {
    const uint64_t owed = nanoseconds() + kMostOwed - kOneSecond;
    words.state.paid_until[1] = owed;
    scan_float(0xff800000);
    EXPECT_EQ(words.state.paid_until[0], 0u);
    EXPECT_EQ(words.state.paid_until[1], owed + pass_time() * kExactShare);
}

TEST_P(Completed, ABadOutputIsKnownToBeBadWithoutAPass) {
    owe_too_much();
    for (const DType dtype : all_types()) {
        Lanes output(dtype, kOutputBytes / info(dtype).lane_bytes), operand(dtype, 16);
        if (info(dtype).has_zero()) output.set(output.count() / 2, one(info(dtype)));
        make_bad(output, dtype, nan_of(info(dtype)));
        const Shaped shaped = whole(output, dtype);
        const Summary want = reference_scan(shaped.view);
        for (const uint8_t flags : {uint8_t(0), uint8_t(kExact)}) {  // the latter's parts are looked at all the same
            words.results[0] = RangeResult{};
            words.state.first_offender = kNoOffender;
            scan(shaped.view, whole(operand, dtype).view, flags);
            EXPECT_EQ(words.results[0].bad, uint64_t(kHitDropped)) << info(dtype).name;
            EXPECT_EQ(words.results[0].largest, want.largest) << info(dtype).name;
            EXPECT_EQ(words.results[0].smallest_nonzero, want.smallest_nonzero) << info(dtype).name;
            EXPECT_EQ(words.state.first_offender, 0u) << "sequence 0, slot 0";
        }
    }
    EXPECT_TRUE(words.take(reader).empty());
    EXPECT_EQ(reader.dropped(), 0u) << "the results say it";
}

TEST_P(Completed, WhatIsNotLookedAtIsCountedWhereNoResultSaysIt) {
    owe_too_much();
    header.results = nullptr;
    scan_float(0x7fc00000);
    EXPECT_EQ(reader.dropped(), 3u) << "the output and its operands";
    scan_float(0x7fc00000, kExact);
    EXPECT_EQ(reader.dropped(), 6u);
    EXPECT_EQ(words.state.dropped, 6u);
    EXPECT_TRUE(words.take(reader).empty());
}

TEST_P(Completed, ABadOutputThatFindsTheRingFullIsCounted) {
    const auto verdict = [&] {
        scan_float(0x7fc00000);
        return words.results[0].bad;
    };
    EXPECT_EQ(verdict(), uint64_t(kHitReported));
    EXPECT_EQ(verdict(), uint64_t(kHitReported));
    EXPECT_EQ(verdict(), uint64_t(kHitDropped));
    EXPECT_EQ(reader.dropped(), 3u);
    EXPECT_EQ(words.state.dropped, 3u);
    EXPECT_EQ(words.take(reader).size(), 6u);
    EXPECT_EQ(verdict(), uint64_t(kHitReported)) << "the host has made room";
    EXPECT_EQ(reader.dropped(), 3u);
}

TEST_P(Completed, AReportOfAFiniteOutputLeavesHalfOfTheRing) {
    const auto verdict = [&] {
        scan_float(0x3f800000, kExact);
        return words.results[0].bad;
    };
    EXPECT_EQ(verdict(), uint64_t(kFiniteReported));
    EXPECT_EQ(verdict(), uint64_t(kFinite));
    EXPECT_EQ(reader.dropped(), 0u) << "it is not missed";
    EXPECT_EQ(words.take(reader).size(), 3u);
    EXPECT_EQ(words.raise, 0u);
    EXPECT_EQ(words.state.first_offender, kNoOffender);
}

std::string name_of(const testing::TestParamInfo<Completed::ParamType>& instance) {
    constexpr const char* kWhose[] = {"OfAllOfIt", "WhosePartIsFine", "WhosePartIsBad"};
    const auto& [last, looks] = instance.param;
    return std::string(kWhose[int(last)]) + (looks ? "WithALook" : "");
}

INSTANTIATE_TEST_SUITE_P(ByABlock, Completed,
                         testing::Combine(testing::Values(Last::AllOfIt, Last::FinePart, Last::BadPart),
                                          testing::Bool()),
                         name_of);

}  // namespace
}  // namespace numsan::gpu
