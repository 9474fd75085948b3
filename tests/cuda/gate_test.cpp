// A batch behind a gate: nothing while the word is 0, everything once the scan of the loss has set it.
#include <gtest/gtest.h>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

struct Gated {
    Words words;
    HitReader reader{words.ring(), words.capacity()};
    Lanes loss{DType::Float32, 1}, activations{DType::Float32, 40000};
    BatchFiller loss_batch, forward_batch;

    Gated() {
        ScanHeader header = words.header();
        header.raise = &words.gate;
        loss_batch.begin(header);
        EXPECT_EQ(loss_batch.add(Shaped(loss.data(), DType::Float32, 1).view, 0, 50, kRaisesGate), Admission::Added);
        EXPECT_TRUE(loss_batch.close());
        activations.set(39999, 0x7f800000);
        header = words.header();
        header.gate = &words.gate;
        header.flags = kClearsGate;
        words.put_into_graph(header);
        forward_batch.begin(header);
        EXPECT_EQ(forward_batch.add(Shaped(activations.data(), DType::Float32, 40000).view, 1, 7), Admission::Added);
        EXPECT_TRUE(forward_batch.close());
    }
};

TEST(Gate, ClosedLaunchesLookAtNothingButCountOn) {
    Gated g;
    for (uint32_t replay = 1; replay < 4; ++replay) {
        run(g.loss_batch, Grid{});
        run(g.forward_batch, Grid{7, 2, replay});
        EXPECT_EQ(g.words.results[1].sequence_plus_one, 0u);
        EXPECT_TRUE(g.words.take(g.reader).empty());
        EXPECT_EQ(g.words.sequence, replay);
        EXPECT_TRUE(g.words.at_rest());
    }
}

TEST(Gate, ABadLossOpensItForOneStep) {
    Gated g;
    g.loss.set(0, 0x7fc00000);
    run(g.loss_batch, Grid{});
    EXPECT_EQ(g.words.gate, 1u);
    run(g.forward_batch, Grid{7, 2, 3});
    const std::vector<HitSlot> hits = g.words.take(g.reader);
    ASSERT_EQ(hits.size(), 2u);
    EXPECT_EQ(hits[0].slot, 0u);
    EXPECT_EQ(hits[1].slot, 1u);
    EXPECT_EQ(g.words.gate, 0u);
    EXPECT_EQ(g.reader.first_offender(), uint64_t(1 + 7) << 32 | 1);
    g.loss.set(0, 0);
    run(g.loss_batch, Grid{});
    run(g.forward_batch, Grid{7, 2, 3});
    EXPECT_TRUE(g.words.take(g.reader).empty());
}

TEST(Gate, OnlyTheMarkedTensorRaisesIt) {
    Gated g;
    ScanHeader header = g.words.header();
    header.raise = &g.words.gate;
    BatchFiller other;
    other.begin(header);
    EXPECT_EQ(other.add(Shaped(g.activations.data(), DType::Float32, 40000).view, 2, 1), Admission::Added);
    EXPECT_TRUE(other.close());
    run(other, Grid{});
    EXPECT_EQ(g.words.take(g.reader).size(), 1u);
    EXPECT_EQ(g.words.gate, 0u);
}

}  // namespace
}  // namespace numsan::gpu
