// What becomes of births that escape nowhere, as the option escape=any has it reported.
#include "host/verdict/absorbed_births.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class Absorbed : public testing::Test {
  protected:
    Absorbed() { s.verdict.set_strict(); }

    /// A NaN at this stack.
    BirthId make(MadeUp& into, StackId stack = 1) {
        MadeUp x{-1, 1};
        s.context.stack = stack;
        return s.op("aten::log", {x.view()}, {into.returned()});
    }
    void end(bool last = true) {
        s.finish();
        s.verdict.report_absorbed(last, s.outcome);
    }
    LastMet last() const { return s.only().birth.last; }

    Stream s;
    MadeUp bad{kNan, 0};
};

TEST_F(Absorbed, NothingIsReportedUnlessAsked) {
    Stream plain;
    MadeUp x{-1};
    plain.op("aten::log", {x.view()}, {bad.returned()});
    plain.finish();
    plain.verdict.report_absorbed(true, plain.outcome);
    EXPECT_TRUE(plain.outcome.escaped.empty());
}

TEST_F(Absorbed, UnreadValue) {
    make(bad);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().severity, Severity::Info);
    EXPECT_EQ(s.only().into, EscapeInto::Output);
    EXPECT_EQ(s.only().birth.op, "aten::log");
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DOM);
    EXPECT_EQ(last().fate, Fate::Unread);
    EXPECT_EQ(s.verdict.counts().escaped, 0) << "it is still counted as absorbed";
    end();
    EXPECT_EQ(s.outcome.escaped.size(), 1u) << "once";
}

TEST_F(Absorbed, CollectivesThatHadBegunBefore) {
    static constexpr Communicator kGroup{"3", "", 0, 2, nullptr};
    MadeUp sent{1, 1};
    s.communicator = &kGroup;
    for (int i = 0; i < 2; ++i) s.op("c10d::allreduce_", {sent.view()}, {sent.written()}, OpClass::Collective);
    make(bad);
    s.op("c10d::allreduce_", {sent.view()}, {sent.written()}, OpClass::Collective);
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    ASSERT_TRUE(s.only().collectives.has_value());
    ASSERT_EQ(s.only().collectives->size(), 1u);
    EXPECT_EQ(s.only().collectives->front().count, 2u);
}

TEST_F(Absorbed, ValueThatIsHandedOn) {
    MadeUp y{kNan, 0}, z{kNan};
    make(bad);
    s.op("aten::mul", {bad.view(), bad.view()}, {y.returned()});
    s.context.stack = 7;
    s.op("aten::sum", {y.view()}, {z.returned()});
    end();
    EXPECT_EQ(last().fate, Fate::ReadLast);
    EXPECT_EQ(last().op, "aten::sum");
    EXPECT_EQ(StackId(last().stack), 7u);
    EXPECT_EQ(s.only().seq, OpSeq{2}) << "where it was read last";
}

TEST_F(Absorbed, ValueThatIsMaskedAway) {
    MadeUp clean{0, 0};
    make(bad);
    s.op("aten::where", {bad.view()}, {clean.returned()}, OpClass::Constant);
    end();
    EXPECT_EQ(last().fate, Fate::Masked);
    EXPECT_EQ(last().op, "aten::where");
}

TEST_F(Absorbed, ValueThatIsMaskedAwayInPlace) {
    make(bad);
    bad.values = {0, 0};
    s.op("aten::masked_fill_", {bad.view()}, {bad.written()}, OpClass::Constant);
    end();
    EXPECT_EQ(last().fate, Fate::Masked);
}

TEST_F(Absorbed, InfinityThatAnExponentialEnds) {
    MadeUp zero{0}, one{1}, inf{-kInf}, end_of_it{0};
    s.op("aten::log", {zero.view()}, {inf.returned()});
    s.op("aten::exp", {inf.view()}, {end_of_it.returned()});
    end();
    EXPECT_EQ(last().fate, Fate::Finite);
    EXPECT_EQ(last().op, "aten::exp");
}

TEST_F(Absorbed, ValueThatIsOverwritten) {
    make(bad);
    bad.values = {0, 0};
    s.op("aten::zero_", {bad.view()}, {bad.written()}, OpClass::Overwriting);
    end();
    EXPECT_EQ(last().fate, Fate::Overwritten);
    EXPECT_EQ(last().op, "aten::zero_");
}

TEST_F(Absorbed, ValueThatAnotherBadOneOverwrites) {
    MadeUp other{kNan, kNan};
    make(bad, 2);
    make(other, 3);
    bad.values = other.values;
    s.op("aten::copy_", {bad.view(), other.view()}, {bad.written()}, OpClass::Overwriting);
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 2u);
    EXPECT_EQ(s.outcome.escaped[0].birth.last.fate, Fate::Overwritten);
    EXPECT_EQ(s.outcome.escaped[1].birth.last.fate, Fate::ReadLast);
}

TEST_F(Absorbed, MemoryThatIsUsedAgainOverwritesNothing) {
    make(bad);
    bad.values = {1, 1};
    s.op("aten::rand", {}, {bad.returned()});
    end();
    EXPECT_EQ(last().fate, Fate::Unread);
}

TEST_F(Absorbed, QuestionAboutAValue) {
    MadeUp answer{0, 0};
    TensorView mask = answer.returned();
    mask.flags &= ~uint32_t(kScannable);
    mask.integer = IntegerType::Bool;
    make(bad);
    s.op("aten::isnan", {bad.view()}, {mask});
    end();
    EXPECT_EQ(last().fate, Fate::NoFloats);
}

TEST_F(Absorbed, SecondOfTwoThatMeet) {
    MadeUp other{kNan, 0}, sum{kNan, 0};
    make(bad, 2);
    make(other, 3);
    s.op("aten::add", {bad.view(), other.view()}, {sum.returned()});
    s.loss(sum);
    EXPECT_EQ(s.outcome.escaped.size(), 1u);
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 2u);
    EXPECT_EQ(s.outcome.escaped[0].severity, Severity::Error);
    EXPECT_EQ(s.outcome.escaped[1].severity, Severity::Info);
    EXPECT_EQ(s.outcome.escaped[1].birth.last.fate, Fate::Joined) << "nothing is said of where it went";
}

TEST_F(Absorbed, IntendedInfinityAndWhatIsIgnoredStaySilent) {
    MadeUp masked{-kInf, 0}, y{1, 0};
    s.infinite_scalar = true;
    s.op("aten::masked_fill", {y.view()}, {masked.returned()}, OpClass::Constant);
    s.infinite_scalar = false;
    s.context.ignored = true;
    make(bad);
    s.context.ignored = false;
    end();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST_F(Absorbed, WhatALossScalerCatches) {
    Backward b;
    b.s.verdict.set_strict();
    b.run();
    MadeUp found{1};
    b.s.op("aten::_amp_foreach_non_finite_check_and_unscale_", {b.gradient.view(), found.view()},
           {b.gradient.written(), found.written()}, OpClass::LossScale);
    b.s.verdict.optimizer_begin(b.s.outcome);
    b.s.finish();
    b.s.verdict.report_absorbed(true, b.s.outcome);
    EXPECT_TRUE(b.s.outcome.escaped.empty());
}

TEST_F(Absorbed, OverflowOfAScaleIsTheScalersWhereverItWent) {
    MadeUp large{3e38f}, gradient{kInf}, scale{1}, ok{0};
    s.op("aten::_amp_update_scale_", {scale.view(), ok.view()}, {scale.written()}, OpClass::LossScale);
    s.context.node = "MulBackward0";
    s.op("aten::mul", {large.view(), large.view()}, {gradient.returned()});
    s.context.node = nullptr;
    make(bad, 4);
    end();
    EXPECT_EQ(s.only().birth.op, "aten::log") << "and not the gradient, which a smaller scale keeps finite";
}

TEST_F(Absorbed, NumberThatTheProgramWroteDown) {
    MadeUp mark{kNan}, mask{1, 0}, table{kNan, 1}, filled{0, 1};
    s.op("aten::lift_fresh", {mark.view()}, {mark.view()}, OpClass::Constant);
    s.op("aten::index_put_", {table.view(), mask.view(), mark.view()}, {table.written()}, OpClass::Constant);
    s.op("aten::where", {mask.view(), filled.view(), table.view()}, {filled.returned()}, OpClass::Constant);
    end();
    EXPECT_TRUE(s.outcome.escaped.empty()) << "a mark for what is missing";
}

TEST_F(Absorbed, DerivativeThatMasksItself) {
    MadeUp zero{0, 1}, quotient{kNan, 1};
    const auto backward = [&](NodeSeq masked_by, const char* node) {
        s.context.node = node;
        s.context.node_sequence = NodeSeq{3};
        s.op("aten::div", {zero.view(), zero.view()}, {quotient.returned()});
        s.context.node_sequence = masked_by;
        MadeUp masked{0, 1};
        s.op("aten::masked_fill", {quotient.view()}, {masked.returned()}, OpClass::Constant);
        s.context.node = nullptr;
        end();
        return s.outcome.escaped.size();
    };
    EXPECT_EQ(backward(NodeSeq{3}, "LinalgVectorNormBackward0"), 0u);
    EXPECT_EQ(backward(NodeSeq{3}, "OwnFunctionBackward"), 1u) << "the formula is the program's";
    s.context.stack = 9;
    EXPECT_EQ(backward(NodeSeq{4}, "LinalgVectorNormBackward0"), 2u) << "in another node";
}

TEST_F(Absorbed, OneOfAPlaceWithTheNumberOfAll) {
    MadeUp more{kNan, 0}, another{kNan, 0};
    make(bad, 4);
    make(more, 4);
    make(another, 5);
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 2u);
    EXPECT_EQ(s.outcome.escaped[0].times, 2);
    EXPECT_EQ(s.outcome.escaped[1].times, 1);
}

TEST_F(Absorbed, PlaceThatIsReportedStandsForItself) {
    MadeUp loss{kNan};
    make(loss, 4);
    s.loss(loss);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    make(bad, 4);
    end();
    EXPECT_EQ(s.outcome.escaped.size(), 1u);
}

TEST_F(Absorbed, ValueThatEscapesAfterItWasReported) {
    make(bad);
    end(false);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    s.loss(bad);
    ASSERT_EQ(s.outcome.escaped.size(), 2u);
    EXPECT_EQ(s.outcome.escaped[1].severity, Severity::Error);
    EXPECT_FALSE(s.outcome.escaped[1].again);
}

TEST_F(Absorbed, WhatWaitsIsDecidedLater) {
    MadeUp read{kNan};
    make(read);
    s.op("aten::item", {read.view()}, {}, OpClass::HostRead);
    s.verdict.report_absorbed(false, s.outcome);
    EXPECT_TRUE(s.outcome.escaped.empty());
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().severity, Severity::Warning);
}

TEST_F(Absorbed, BirthsThatGaveWayAreCounted) {
    constexpr int kMany = 6000;  // more than are kept of what nothing holds
    for (int i = 0; i < kMany; ++i) {
        bad.values = {kNan, 0};
        make(bad, 4);
    }
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().times, kMany);
    EXPECT_EQ(s.only().birth.seq, OpSeq{0}) << "the first";
}

TEST_F(Absorbed, BirthsOfAParentAreTheParents) {
    make(bad, 4);
    s.verdict.forget_pending();
    MadeUp own{kNan, 0};
    make(own, 5);
    end();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(StackId(s.only().birth.stack), 5u);
}

}  // namespace
}  // namespace numsan
