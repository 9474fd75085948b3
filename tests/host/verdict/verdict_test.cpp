// The verdict over made-up streams of ops: what is born, what follows from it, what escapes, what is let go.
#include "host/verdict/verdict.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TEST(Verdict, BirthConsequenceAndLoss) {
    Stream s;
    MadeUp x{-1, 1}, y{kNan, 0}, z{kNan, 0}, loss{kNan};
    const BirthId born = s.op("aten::log", {x.view()}, {y.returned()});
    EXPECT_NE(born, 0u);
    EXPECT_EQ(s.op("aten::mul", {y.view(), x.view()}, {z.returned()}), born);
    s.op("aten::sum", {z.view()}, {loss.returned()});
    EXPECT_TRUE(s.outcome.escaped.empty());
    s.loss(loss);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.op, "aten::log");
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DOM);
    EXPECT_EQ(s.only().birth.kind, kNaN);
    EXPECT_EQ(s.only().birth.phase, Phase::Forward);
    EXPECT_EQ(s.only().birth.seq, OpSeq{0});
    EXPECT_EQ(s.only().seq, OpSeq{3});
    EXPECT_EQ(s.only().into, EscapeInto::Loss);
    EXPECT_EQ(s.only().severity, Severity::Error);
    ASSERT_EQ(s.only().birth.inputs.size(), 1u);
    EXPECT_EQ(s.only().birth.inputs[0].health.min, -1);
    EXPECT_EQ(s.only().birth.outputs[0].health.nan, 1);
    EXPECT_EQ(s.verdict.counts().births, 1);
    s.loss(loss);
    s.finish();
    EXPECT_EQ(s.outcome.escaped.size(), 1u) << "an escaped birth is reported once";
}

TEST(Verdict, InfinityIsBlamedForTheNaNItBecomes) {
    Stream s;
    MadeUp big{1e38f}, product{kInf}, difference{kNan};
    s.op("aten::mul", {big.view(), big.view()}, {product.returned()});
    s.op("aten::sub", {product.view(), product.view()}, {difference.returned()});
    s.loss(difference);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.op, "aten::mul");
    EXPECT_EQ(s.only().birth.kind, kPosInf);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::OVF);
    EXPECT_EQ(s.verdict.counts().births, 1);
}

TEST(Verdict, IntendedMaskIsIndeterminateInSoftmax) {
    Stream s;
    MadeUp scores{1, 2}, masked{-kInf, -kInf}, weights{kNan, kNan};
    s.infinite_scalar = true;
    s.op("aten::masked_fill", {scores.view()}, {masked.returned()}, OpClass::Constant);
    s.infinite_scalar = false;
    EXPECT_EQ(s.verdict.counts().births, 0) << "an infinity that was written on purpose is no birth to count";
    s.op("aten::_softmax", {masked.view()}, {weights.returned()});
    s.loss(weights);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.op, "aten::_softmax");
    EXPECT_EQ(s.only().birth.kind, kNaN);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::INDET);
}

TEST(Verdict, IntendedInfinityThatSoftmaxAbsorbsIsNothing) {
    Stream s;
    MadeUp scores{1, 2}, masked{1, -kInf}, weights{1, 0}, kept{1};
    s.infinite_scalar = true;
    s.op("aten::masked_fill_", {scores.view()}, {masked.returned()}, OpClass::Constant);
    s.infinite_scalar = false;
    s.op("aten::_softmax", {masked.view()}, {weights.returned()});
    s.op("aten::item", {masked.view()}, {}, OpClass::HostRead);
    s.loss(weights);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST(Verdict, AbsorbedValueIsNeverReported) {
    Stream s;
    MadeUp x{-1, 1}, y{kNan, 0}, z{0, 0}, loss{0};
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("aten::where", {y.view(), x.view()}, {z.returned()}, OpClass::Preserving);
    s.op("aten::sum", {z.view()}, {loss.returned()});
    s.loss(loss);
    s.step();
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
    EXPECT_EQ(s.verdict.counts().births, 1);
    EXPECT_EQ(s.verdict.counts().absorbed, 1);
}

TEST(Verdict, GradientIsAnErrorOnceTheOptimizerSteps) {
    Backward b;
    b.run();
    EXPECT_TRUE(b.s.outcome.escaped.empty());
    b.s.step();
    ASSERT_EQ(b.s.outcome.escaped.size(), 1u);
    const EscapedBirth made = b.s.only();
    EXPECT_EQ(made.into, EscapeInto::Gradient);
    EXPECT_EQ(made.severity, Severity::Error);
    EXPECT_EQ(made.impl, &b.parameter);
    EXPECT_EQ(made.birth.phase, Phase::Backward);
    EXPECT_EQ(made.birth.node, "SqrtBackward0");
    EXPECT_TRUE(made.birth.has_forward);
    EXPECT_EQ(made.birth.forward_op, "aten::sqrt");
    EXPECT_EQ(made.birth.forward_stack, 5u);
    EXPECT_EQ(made.birth.mechanism, Mechanism::SING);
    ASSERT_EQ(b.s.outcome.contaminated.size(), 2u);
    EXPECT_EQ(b.s.outcome.contaminated[0].kind, EscapeInto::Gradient);
    EXPECT_EQ(b.s.outcome.contaminated[1].kind, EscapeInto::Parameter);
    for (const Contamination& one : b.s.outcome.contaminated) EXPECT_EQ(one.impl, &b.parameter);
}

TEST(Verdict, GradientStillPendingAtTheEndIsAnError) {
    Backward b;
    b.run();
    b.s.finish();
    ASSERT_EQ(b.s.outcome.escaped.size(), 1u);
    EXPECT_EQ(b.s.only().severity, Severity::Error);
}

TEST(Verdict, WhatALossScalerCatchesIsItsOwnBusiness) {
    Backward b;
    b.run();
    MadeUp found{1};
    b.s.op("aten::_amp_foreach_non_finite_check_and_unscale_", {b.gradient.view(), found.view()},
           {b.gradient.written(), found.written()}, OpClass::LossScale);
    b.s.verdict.optimizer_begin(b.s.outcome);
    b.s.finish();
    EXPECT_TRUE(b.s.outcome.escaped.empty());
}

TEST(Verdict, LossThatOverflowedByItsScalingWaitsForTheScaler) {
    Stream s;
    MadeUp loss{1e38f}, scale{65536}, scaled{kInf}, gradient{kInf};
    MadeUp weight({1}, kParameter);
    s.context.stack = kScalerStack;
    s.op("aten::mul", {loss.view(), scale.view()}, {scaled.returned()});
    s.context.stack = 1;
    s.loss(scaled);
    s.context.node = "MulBackward0";
    s.op("aten::mul", {scaled.view()}, {gradient.returned()});
    s.accumulate(gradient, weight);
    s.context.node = nullptr;
    EXPECT_TRUE(s.outcome.escaped.empty());
    s.step();
    EXPECT_EQ(s.outcome.escaped.size(), 1u) << "nothing caught it before the optimizer ran";
    EXPECT_EQ(s.only().into, EscapeInto::Loss);
}

TEST(Verdict, ZeroGradDiscardsToAWarning) {
    Backward b;
    b.run();
    b.s.verdict.zero_grad();
    b.s.verdict.optimizer_begin(b.s.outcome);
    EXPECT_TRUE(b.s.outcome.escaped.empty());
    b.s.finish();
    ASSERT_EQ(b.s.outcome.escaped.size(), 1u);
    EXPECT_EQ(b.s.only().severity, Severity::Warning);
}

TEST(Verdict, HostReadIsAWarningAtTheEnd) {
    Stream s;
    MadeUp x{-1}, y{kNan};
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("aten::_local_scalar_dense", {y.view()}, {}, OpClass::HostRead);
    EXPECT_TRUE(s.outcome.escaped.empty());
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Host);
    EXPECT_EQ(s.only().severity, Severity::Warning);
}

TEST(Verdict, HostReadThatBecomesALossIsOneError) {
    Stream s;
    MadeUp x{-1}, y{kNan};
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("aten::_local_scalar_dense", {y.view()}, {}, OpClass::HostRead);
    s.loss(y);
    s.finish();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().severity, Severity::Error);
    EXPECT_EQ(s.only().into, EscapeInto::Loss);
}

TEST(Verdict, WriteIntoAParameter) {
    Stream s;
    MadeUp weight({kInf}, kParameter), gradient{1e38f};
    s.grad_enabled = false;
    s.context.in_module = false;
    s.op("aten::add_", {weight.view(), gradient.view()}, {weight.written()});
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Parameter);
    EXPECT_EQ(s.only().impl, &weight);
    EXPECT_EQ(s.only().birth.phase, Phase::Optimizer);
    EXPECT_FALSE(s.only().birth.inputs[0].exact) << "the operand was overwritten before it could be looked at";
}

TEST(Verdict, CollectiveOfABadValue) {
    Stream s;
    MadeUp x{-1}, y{kNan};
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("c10d::allreduce_", {y.view()}, {y.written()}, OpClass::Collective);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().into, EscapeInto::Collective);
}

TEST(Verdict, WhatWasSentIsKnownEvenIfTheAnswerIsAlreadyThere) {
    for (const bool early : {false, true}) {
        Stream s;
        MadeUpHalf gradient{20000}, bucket{40000}, mean{kInf};
        s.op("aten::mul", {gradient.view()}, {bucket.returned()});
        const auto answer = [&] { bucket.bits = {static_cast<uint16_t>(encoded(kInf, DType::Float16))}; };
        if (early) answer();
        s.op("c10d::allreduce_", {bucket.view()}, {bucket.written()}, OpClass::Collective);
        if (!early) answer();
        s.op("aten::div", {bucket.view()}, {mean.returned()});
        s.loss(mean);
        ASSERT_EQ(s.outcome.escaped.size(), 1u);
        EXPECT_EQ(s.only().birth.mechanism, Mechanism::OVF) << early;
        EXPECT_EQ(s.only().birth.phase, Phase::Comm);
    }
}

TEST(Verdict, BadBatch) {
    Stream s;
    MadeUp batch{kNan, 1}, weight({2, 2}, kParameter), y{kNan, 2};
    s.op("aten::mul", {batch.view(), weight.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(s.only().birth.phase, Phase::Data);
}

TEST(Verdict, MemoryThatNothingWrote) {
    Stream s;
    MadeUp memory{kNan, 1}, y{kNan, 2};
    s.context.stack = 9;
    s.op("aten::empty", {}, {memory.returned()}, OpClass::Allocation);
    s.context.stack = 1;
    s.context.ranges = {4, 5};
    s.op("aten::mul", {memory.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::UNINIT);
    EXPECT_EQ(s.only().birth.stack, 9u) << "the allocation is the place to look at";
    EXPECT_EQ(s.only().birth.ranges.pushed, 0u) << "those are of the op that read it";
    EXPECT_EQ(s.only().birth.seq, OpSeq{0});
}

TEST(Verdict, PlaceholderOfWhatOneRankSendsIsNotSent) {
    for (const char* op : {"c10d::broadcast_", "_c10d_functional::broadcast_", "c10d::scatter_", "c10d::allreduce_"}) {
        Stream s;
        MadeUp x{-1}, memory{kNan};
        s.op("aten::log", {x.view()}, {memory.returned()});
        s.op(op, {memory.view()}, {memory.written()}, OpClass::Collective);
        const bool all_send = std::string(op) == "c10d::allreduce_";
        EXPECT_EQ(s.outcome.escaped.size(), all_send ? 1u : 0u) << op;
    }
    Stream root;
    MadeUp negative{-1}, part{kNan}, own{0};
    root.op("aten::log", {negative.view()}, {part.returned()});
    root.op("c10d::scatter_", {own.view(), part.view()}, {own.written()}, OpClass::Collective);
    ASSERT_EQ(root.outcome.escaped.size(), 1u) << "the parts are the root's, which sends them";
    EXPECT_EQ(root.only().into, EscapeInto::Collective);
}

TEST(Verdict, SentMemoryThatWasWrittenInPart) {
    Stream s;
    MadeUp shard{1, kNan}, part{1}, other{0, 0};
    s.op("aten::empty", {}, {shard.returned()}, OpClass::Allocation);
    TensorView head = shard.written();
    head.numel = 1;
    const int64_t one = 1;
    head.sizes = &one;
    s.op("aten::copy_", {head, part.view()}, {head}, OpClass::Overwriting);
    s.op("c10d::allgather_", {other.view(), shard.view()}, {other.written()}, OpClass::Collective);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::UNINIT);
    EXPECT_EQ(s.only().birth.phase, Phase::Comm);
    EXPECT_EQ(s.only().into, EscapeInto::Collective);
    MadeUp y{kNan};
    other.values = {1, kNan};
    s.op("aten::sum", {other.view()}, {y.returned()});
    s.loss(y);
    EXPECT_EQ(s.outcome.escaped.size(), 1u) << "what it sent has come back";
}

TEST(Verdict, WhatACollectiveFillsIsNotSent) {
    for (const char* op : {"c10d::allgather_", "c10d::recv_"}) {
        Stream s;
        const bool receives = std::string(op) == "c10d::recv_";
        MadeUp memory{kNan}, one{1};
        s.op("aten::empty", {}, {memory.returned()}, OpClass::Allocation);
        std::vector<TensorView> operands{memory.view()};
        if (!receives) operands.push_back(one.view());
        s.context.ranges = {4, 5};
        s.op(op, operands, {memory.written()}, OpClass::Collective);
        EXPECT_EQ(s.outcome.escaped.size(), 0u) << op;
        s.context.ranges = {6, 7};
        MadeUp y{kNan};
        s.op("aten::mul", {memory.view()}, {y.returned()});
        s.loss(y);
        ASSERT_EQ(s.outcome.escaped.size(), 1u) << op;
        EXPECT_EQ(s.only().birth.mechanism, Mechanism::DATA) << "it came from another rank";
        EXPECT_EQ(s.only().birth.ranges.pushed, 4u) << "the collective's, not the reader's";
        EXPECT_EQ(s.only().birth.ranges.started, 5u);
        EXPECT_EQ(s.only().birth.phase, Phase::Comm);
    }
}

TEST(Verdict, WhichRankAReceivedValueIsOf) {
    const auto evidence = [](const char* op, bool puts_in, std::vector<double> scalars) {
        Stream s;
        MadeUp first{1, 1}, second{1, kNan}, own{1, 1}, y{kNan};
        s.scalars = std::move(scalars);
        std::vector<TensorView> operands{first.view(), second.view()};
        if (puts_in) operands.push_back(own.view());
        s.op(op, operands, {first.written(), second.written()}, OpClass::Collective);
        s.scalars.clear();
        s.op("aten::sum", {second.view()}, {y.returned()});
        s.loss(y);
        return s.only().birth.evidence.empty() ? "" : s.only().birth.evidence.front();
    };
    const std::string rest = ": what this process put in was finite";
    EXPECT_EQ(evidence("c10d::allgather_", true, {}), "received from rank 1 of its group" + rest);
    EXPECT_EQ(evidence("c10d::broadcast_", false, {3, 0}), "received from rank 3 of its group" + rest);
    EXPECT_EQ(evidence("c10d::recv_", false, {2, 0}), "received from rank 2 of its group" + rest);
    EXPECT_EQ(evidence("c10d::alltoall_", true, {}), "received" + rest) << "of which rank is not known";
    Stream s;
    MadeUp whole{1, 1, 1, 1, kNan, 1}, own{1, 1}, y{kNan};
    s.op("c10d::_allgather_base_", {whole.view(), own.view()}, {whole.written()}, OpClass::Collective);
    s.op("aten::sum", {whole.view()}, {y.returned()});
    s.loss(y);
    EXPECT_EQ(s.only().birth.evidence.front(), "received from rank 2 of its group" + rest);
}

TEST(Verdict, WrittenMemoryIsNoLongerUnwritten) {
    Stream s;
    MadeUp memory{1, 1}, x{1, 1}, y{kNan, 2};
    s.op("aten::empty", {}, {memory.returned()}, OpClass::Allocation);
    s.op("aten::copy_", {memory.view(), x.view()}, {memory.written()}, OpClass::Overwriting);
    memory.values[0] = kNan;  // unseen
    s.op("aten::mul", {memory.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DATA);
}

TEST(Verdict, HiddenForwardBirthComesBackInItsBackward) {
    Stream s;
    MadeUp x{-1}, y{kNan}, hidden{0}, gradient{kNan}, one{1};
    MadeUp weight({1}, kParameter);
    OpInfo log{"aten::log", "", OpClass::Other, false, 0};
    s.forward = {};
    const BirthId born = s.op("aten::log", {x.view()}, {y.returned()});
    s.op("aten::where", {y.view()}, {hidden.returned()}, OpClass::Preserving);
    s.context.node = "LogBackward0";
    s.forward = {&log, 1, born};
    s.op("aten::div", {one.view(), x.view()}, {gradient.returned()});
    s.accumulate(gradient, weight);
    s.context.node = nullptr;
    s.step();
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.op, "aten::log");
    EXPECT_EQ(s.only().birth.phase, Phase::Forward);
    EXPECT_EQ(s.verdict.counts().births, 1);
}

TEST(Verdict, NothingEscapesInsideAnIgnoredScope) {
    Stream s;
    MadeUp x{-1}, y{kNan};
    MadeUp weight({kNan}, kParameter);
    s.context.ignored = true;
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("aten::_local_scalar_dense", {y.view()}, {}, OpClass::HostRead);
    s.op("aten::copy_", {weight.view(), y.view()}, {weight.written()}, OpClass::Overwriting);
    s.loss(y);
    s.context.ignored = false;
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST(Verdict, WhatAnIgnoredScopeMadeIsIgnoredOutsideToo) {
    Stream s;
    MadeUp x{-1}, y{kNan};
    s.context.ignored = true;
    s.op("aten::log", {x.view()}, {y.returned()});
    s.context.ignored = false;
    s.op("aten::_local_scalar_dense", {y.view()}, {}, OpClass::HostRead);
    s.loss(y);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST(Verdict, BadBatchFirstSeenInAnIgnoredScopeStillCounts) {
    Stream s;
    MadeUp batch{kNan}, y{kNan};
    s.context.ignored = true;
    s.op("aten::abs", {batch.view()}, {y.returned()});
    s.context.ignored = false;
    s.op("aten::mul", {batch.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DATA);
}

TEST(Verdict, SamePlaceAgainIsOnlyCounted) {
    Stream s;
    for (int i = 0; i < 3; ++i) {
        MadeUp x{-1}, y{kNan};
        s.op("aten::log", {x.view()}, {y.returned()});
        s.loss(y);
    }
    ASSERT_EQ(s.outcome.escaped.size(), 3u);
    EXPECT_FALSE(s.outcome.escaped[0].again);
    EXPECT_TRUE(s.outcome.escaped[1].again);
    EXPECT_TRUE(s.outcome.escaped[2].again);
}

TEST(Verdict, CleanSliceOfABadStorageCarriesNothing) {
    Stream s;
    MadeUp x{-1, 1}, y{kNan, 0}, loss{0};
    s.op("aten::log", {x.view()}, {y.returned()});
    TensorView slice = y.view();
    const int64_t one = 1;
    slice.data = &y.values[1];
    slice.numel = 1;
    slice.sizes = &one;
    s.op("aten::sum", {slice}, {loss.returned()});
    EXPECT_EQ(s.op("aten::neg", {slice}, {loss.returned()}), 0u);
    s.loss(loss);
    s.finish();
    EXPECT_TRUE(s.outcome.escaped.empty());
}

TEST(Verdict, OverwrittenStorageIsForgotten) {
    Stream s;
    MadeUp x{-1}, y{kNan}, zero{0}, z{kNan};
    s.op("aten::log", {x.view()}, {y.returned()});
    y.values[0] = 0;
    s.op("aten::zero_", {y.view()}, {y.written()}, OpClass::Overwriting);
    const BirthId born = s.op("aten::div", {y.view(), zero.view()}, {z.returned()});
    EXPECT_EQ(born, 2u) << "a new birth, not a consequence of the value that is gone";
    s.loss(z);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DIV0);
}

TEST(Verdict, ForgottenByAForkedChild) {
    Backward b;
    b.run();
    b.s.verdict.lock();
    b.s.verdict.forget_pending();
    b.s.verdict.unlock();
    b.s.finish();
    EXPECT_TRUE(b.s.outcome.escaped.empty());
}

TEST(Verdict, ManyAbsorbedBirthsDoNotCrowdOutALaterOne) {
    Stream s;
    MadeUp x{-1}, y{kNan};
    for (int i = 0; i < 40000; ++i) s.op("aten::log", {x.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.seq, OpSeq{39999});
    EXPECT_EQ(s.verdict.counts().births, 40000);
    EXPECT_EQ(s.verdict.counts().absorbed, 39999);
}

TEST(Verdict, OnlyWhatTouchesSomethingBadIsInteresting) {
    Stream s;
    OpInfo add{"aten::add", "", OpClass::Other, false, 0};
    MadeUp x{1}, y{2};
    const TensorView input = x.view(), output = y.returned();
    OpEvent event{};
    event.op = &add;
    event.inputs = &input;
    event.outputs = &output;
    event.input_count = event.output_count = 1;
    EXPECT_FALSE(s.verdict.interesting(event, {}));
    EXPECT_TRUE(s.verdict.interesting(event, OutputSet::only(0)));
    MadeUp negative{-1};
    x.values[0] = kNan;
    s.op("aten::log", {negative.view()}, {x.returned()});
    EXPECT_TRUE(s.verdict.interesting(event, {}));
}

}  // namespace
}  // namespace numsan
