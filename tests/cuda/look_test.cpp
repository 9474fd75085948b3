// Looks: what a scan leaves to the launch behind it is reported as one block would report it, whatever the grids; and
// exact passes stop when they have taken their share of the device's time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cuda/kernel/exact_budget.cuh"
#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

/// Ops of one output and several operands, of many sizes and types: two outputs of three are bad, half the operands.
struct Ops {
    std::vector<std::unique_ptr<Lanes>> memory;
    std::vector<Shaped> outputs;
    std::vector<std::vector<TensorView>> operands;
    std::vector<Shaped> kept;  ///< of the operands

    Ops(int count, int operand_count, uint64_t seed) {
        std::mt19937_64 random(seed);
        kept.reserve(size_t(count * operand_count));
        for (int i = 0; i < count; ++i) {
            outputs.push_back(tensor(random, i % 3 != 2));
            std::vector<TensorView>& mine = operands.emplace_back();
            for (int k = 0; k < operand_count; ++k) {
                kept.push_back(tensor(random, random() % 2 == 0));
                mine.push_back(kept.back().view);
            }
        }
    }

    /// Not every type has a pattern that is not finite.
    size_t bad_outputs() const {
        const auto is_bad = [](const Shaped& one) { return reference_scan(one.view).health.first_bad >= 0; };
        return size_t(std::count_if(outputs.begin(), outputs.end(), is_bad));
    }

    Shaped tensor(std::mt19937_64& random, bool bad) {
        const std::vector<DType> types = all_types();
        const DType dtype = types[random() % types.size()];
        const DTypeInfo& t = info(dtype);
        const int64_t n =
            (random() % 3 == 0 ? 16 + int64_t(random() % 300) : 20000 + int64_t(random() % 60000)) / t.element_bytes();
        const int64_t offset = int64_t(random() % 5);
        memory.push_back(std::make_unique<Lanes>(dtype, (n + offset) * t.lanes));
        Lanes& lanes = *memory.back();
        for (int64_t lane = 0; lane < lanes.count(); ++lane) lanes.set(lane, finite(t, random));
        if (bad) lanes.set((offset + int64_t(random() % uint64_t(n))) * t.lanes, nan_of(t));
        const void* data = lanes.data() + offset * t.element_bytes();
        if (random() % 3 == 0 && n >= 12) return Shaped(data, dtype, {n / 4, 3}, {4, 1});
        return Shaped(data, dtype, n);
    }

    void add_to(BatchFiller& filler, uint8_t flags = 0) const {
        for (uint32_t i = 0; i < outputs.size(); ++i) {
            const InputItems inputs = filler.add_inputs(operands[i].data(), int(operands[i].size()));
            ASSERT_EQ(filler.add(outputs[i].view, i, i, flags, inputs), Admission::Added);
        }
    }
};

/// A batch that a look follows, whatever its size.
void close_with_look(BatchFiller& filler, Words& words) {
    ASSERT_TRUE(filler.close());
    ASSERT_EQ(filler.header().looks, nullptr) << "small enough for one block";
    filler.header().looks = &words.looks;
    filler.header().look_chunks = 4 * filler.header().chunks;
}

/// What became of the ops: every output's words, its hit, and those of its operands. How many operands were reported.
size_t expect(const Ops& ops, Words& words, HitReader& reader) {
    EXPECT_TRUE(words.at_rest());
    EXPECT_EQ(reader.dropped(), 0u);
    const std::vector<HitSlot> hits = words.take(reader);
    std::map<uint32_t, const HitSlot*> of_output;
    size_t operands = 0;
    for (size_t i = 0; i < hits.size(); i += 1 + hits[i].inputs) {
        EXPECT_EQ(hits[i].role, HitRole::Output);
        EXPECT_TRUE(of_output.emplace(hits[i].slot, &hits[i]).second) << "two hits of output " << hits[i].slot;
        for (uint32_t k = 1; k <= hits[i].inputs; ++k) {
            const HitSlot& input = hits[i + k];
            EXPECT_EQ(input.role, HitRole::Input);
            EXPECT_EQ(input.slot, hits[i].slot);
            const TensorView& operand = ops.operands[input.slot][input.argument];
            EXPECT_EQ(difference(to_health(input), reference_scan(operand).health), "")
                << "operand " << +input.argument << " of output " << input.slot;
            ++operands;
        }
    }
    for (uint32_t i = 0; i < ops.outputs.size(); ++i) {
        const auto hit = of_output.find(i);
        EXPECT_EQ(difference(words.results[i], hit != of_output.end() ? hit->second : nullptr, ops.outputs[i].view), "")
            << "output " << i;
        EXPECT_EQ(words.results[i].sequence_plus_one, i + 1);
    }
    return operands;
}

/// The ops in a batch that a look follows.
struct Looked {
    Words words;
    HitReader reader{words.ring(), words.capacity()};
    BatchFiller filler;

    explicit Looked(const Ops& ops) {
        filler.begin(words.header());
        ops.add_to(filler);
        close_with_look(filler, words);
    }
};

TEST(Look, FindsWhatOneBlockFinds) {
    for (uint32_t seed = 1; seed < 5; ++seed) {
        const Ops ops(6, 2, seed);
        Looked looked(ops);
        run(looked.filler, Grid{seed * seed, seed % 2 == 0 ? 4 : 1, seed});
        EXPECT_EQ(expect(ops, looked.words, looked.reader), 2 * ops.bad_outputs());
    }
}

TEST(Look, HasAGridOfItsOwn) {
    const Ops ops(2, 2, 5);
    for (const uint32_t blocks : {1u, 5u, 30u}) {
        Looked looked(ops);
        looked.filler.header().scan_blocks = std::min(3u, looked.filler.header().chunks);
        run_grid(looked.filler.small(), Grid{3, 1, 0});
        EXPECT_TRUE(looked.words.take(looked.reader).empty()) << "nothing is reported before it is looked at";
        EXPECT_EQ(looked.words.results[0].sequence_plus_one, 0u);
        run_grid(looked.filler.small(), Grid{blocks, 1, blocks}, Kernel::Look);
        EXPECT_EQ(expect(ops, looked.words, looked.reader), 2 * ops.bad_outputs());
    }
}

TEST(Look, ReportsOutputsWhoseOperandsFindNoRoom) {
    constexpr int kOfEach = 200, kOutputs = 3;
    static_assert(kOfEach * kOutputs > int(kLookedInputs));
    Lanes lanes(DType::Float32, 40);
    lanes.set(7, 0x7fc00000);
    const Shaped shaped(lanes.data(), DType::Float32, 40);
    Words words;
    HitReader reader(words.ring(), words.capacity());
    BatchFiller filler;
    filler.begin(words.header());
    const std::vector<TensorView> operands(kOfEach, shaped.view);
    const InputItems inputs = filler.add_inputs(operands.data(), kOfEach);
    for (uint32_t i = 0; i < kOutputs; ++i) ASSERT_EQ(filler.add(shaped.view, i, i, 0, inputs), Admission::Added);
    close_with_look(filler, words);
    run(filler, Grid{3, 2, 9});
    EXPECT_TRUE(words.at_rest());
    uint32_t reported = 0;
    for (const HitSlot& hit : words.take(reader)) {
        EXPECT_EQ(hit.nan, 1);
        reported += hit.role == HitRole::Output ? hit.inputs : 0;
    }
    EXPECT_EQ(reported, kLookedInputs);
    for (int i = 0; i < kOutputs; ++i) EXPECT_EQ(words.results[size_t(i)].bad, uint64_t(kHitReported));
}

TEST(Look, DoesNothingWhereAllIsFinite) {
    Lanes lanes(DType::Float32, 50000);
    Words words;
    HitReader reader(words.ring(), words.capacity());
    BatchFiller filler;
    filler.begin(words.header());
    ASSERT_EQ(filler.add(Shaped(lanes.data(), DType::Float32, 50000).view, 0, 0), Admission::Added);
    close_with_look(filler, words);
    for (int replay = 0; replay < 3; ++replay) {
        run(filler, Grid{8, 1, 1});
        EXPECT_TRUE(words.at_rest());
        EXPECT_TRUE(words.take(reader).empty());
        EXPECT_EQ(words.results[0].bad, uint64_t(kFinite));
    }
    lanes.set(7, 0x7f800000);
    run(filler, Grid{8, 1, 1});
    EXPECT_EQ(words.take(reader).size(), 1u);
    EXPECT_EQ(words.results[0].bad, uint64_t(kHitReported));
    EXPECT_EQ(words.state.paid_until[0], 0u);
    EXPECT_NE(words.state.paid_until[1], 0u) << "infinities have an account of their own";
}

TEST(Look, FollowsWhereOneBlockWouldTakeLong) {
    alignas(16) static unsigned char place[16];
    const auto follows = [&](std::vector<int64_t> operands, int64_t output, uint8_t flags) {
        Words words;
        BatchFiller filler;
        filler.begin(words.header());
        std::vector<Shaped> shaped;
        for (const int64_t bytes : operands) shaped.emplace_back(place, DType::Float32, bytes / 4);
        std::vector<TensorView> views;
        for (const Shaped& one : shaped) views.push_back(one.view);
        const InputItems inputs = filler.add_inputs(views.data(), int(views.size()));
        EXPECT_EQ(filler.add(Shaped(place, DType::Float32, output / 4).view, 0, 0, flags, inputs), Admission::Added);
        EXPECT_TRUE(filler.close());
        const ScanHeader& header = filler.header();
        EXPECT_GE(header.look_chunks, header.chunks);
        return header.looks != nullptr;
    };
    EXPECT_FALSE(follows({}, kAloneBytes, 0));
    EXPECT_TRUE(follows({}, kAloneBytes + 4, 0));
    EXPECT_FALSE(follows({kAloneBytes / 2}, kAloneBytes / 2, 0));
    EXPECT_TRUE(follows({kAloneBytes}, 4, 0)) << "a loss of large logits";
    EXPECT_FALSE(follows({}, kAlwaysAloneBytes, kExact));
    EXPECT_TRUE(follows({4}, kAlwaysAloneBytes, kExact));
}

struct Indebted : testing::TestWithParam<bool> {
    Lanes lanes{DType::Float32, 90000};
    Lanes operand{DType::Float32, 90000};
    Words words;
    HitReader reader{words.ring(), words.capacity()};
    BatchFiller filler;

    void scan(uint8_t flags = 0) {
        filler.begin(words.header());
        const Shaped shaped(operand.data(), DType::Float32, 90000);
        const InputItems inputs = filler.add_inputs(&shaped.view, 1);
        ASSERT_EQ(filler.add(Shaped(lanes.data(), DType::Float32, 90000).view, 0, 0, flags, inputs), Admission::Added);
        ASSERT_TRUE(filler.close());
        filler.header().looks = GetParam() ? &words.looks : nullptr;
        filler.header().look_chunks = 2 * filler.header().chunks;
        run(filler, Grid{7, 2, 3});
        EXPECT_TRUE(words.at_rest());
    }
};

TEST_P(Indebted, ABadOutputIsReportedWithoutAnExactPass) {
    lanes.set(80000, 0x7fc00000);
    words.state.paid_until[0] = nanoseconds() + kMostOwed + 60 * kSecond;
    scan();
    EXPECT_TRUE(words.take(reader).empty());
    EXPECT_EQ(words.results[0].bad, uint64_t(kHitDropped));
    EXPECT_EQ(reader.dropped(), 0u) << "the result says it";
    EXPECT_EQ(reader.first_offender(), 0u) << "sequence 0, slot 0";
    words.state.paid_until[0] = 0;
    scan();
    EXPECT_EQ(words.take(reader).size(), 2u) << "as soon as it can be paid for";
}

TEST_P(Indebted, WhatIsAlwaysLookedAtIsPaidForElsewhere) {
    lanes.fill(0x3f800000);
    const uint64_t owed = nanoseconds() + kMostOwed + 60 * kSecond;
    words.state.paid_until[0] = words.state.paid_until[1] = owed;
    scan(kExact);
    EXPECT_EQ(words.take(reader).size(), 2u);
    EXPECT_EQ(words.results[0].bad, uint64_t(kFiniteReported));
    EXPECT_EQ(words.state.paid_until[0], owed);
}

TEST_P(Indebted, APassTakesItsTimeManyTimesOver) {
    lanes.set(5, 0x7fc00000);
    const uint64_t before = nanoseconds();
    scan();
    constexpr uint64_t kBytes = 2 * 90000 * 4;
    const uint64_t pass = GetParam() ? kGridPassNanoseconds + kBytes / kGridBytesPerNanosecond
                                     : kBlockPassNanoseconds + kBytes / kBlockBytesPerNanosecond;
    EXPECT_GE(words.state.paid_until[0], before + pass * kExactShare);
    EXPECT_LE(words.state.paid_until[0], nanoseconds() + pass * kExactShare);
}

TEST(ExactBudget, IsUsedUpAndEarnedAgain) {
    uint64_t account = 0;
    constexpr uint64_t kPass = kMostOwed / kExactShare * 6 / 10;
    EXPECT_TRUE(may_pass(account));
    EXPECT_TRUE(pay(account, kPass));
    EXPECT_TRUE(pay(account, kPass)) << "what is owed may be exceeded once";
    const uint64_t owed = account;
    EXPECT_GT(owed, nanoseconds() + kMostOwed);
    EXPECT_FALSE(may_pass(account));
    EXPECT_FALSE(pay(account, 1));
    EXPECT_EQ(account, owed);
    account -= kMostOwed;  // as if so much time had passed
    EXPECT_TRUE(pay(account, 1));
    EXPECT_EQ(account, owed - kMostOwed + kExactShare);
}

TEST(ExactBudget, AClockThatWasSetBackRefusesNothing) {
    uint64_t account = nanoseconds() + 3600 * kSecond;
    EXPECT_TRUE(may_pass(account));
    EXPECT_TRUE(pay(account, 1));
    EXPECT_LT(account, nanoseconds() + kSecond);
}

INSTANTIATE_TEST_SUITE_P(Alone, Indebted, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(ByALook, Indebted, testing::Values(true));

}  // namespace
}  // namespace numsan::gpu
