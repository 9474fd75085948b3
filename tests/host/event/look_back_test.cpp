// Tiers that do not read every output: what a look back finds of what was left out.
#include "tests/host/event/storages.h"
#include "tests/host/session/played.h"

namespace numsan {
namespace {

constexpr size_t kLarge = 8192;  // floats: above what the sentinel reads at once
const OpInfo kMean{"aten::mean", "", OpClass::Other, false, 6};
const OpInfo kMm{"aten::mm", "", OpClass::Other, false, 7};
const OpInfo kMaskedFill{"aten::masked_fill", "", OpClass::Constant, false, 8};

class LookBack : public testing::Test {
  protected:
    Played& play(const char* options) {
        Played& made = Played::make(options);
        made.session->use(Storages::kAdapter);
        made.stacks.stacks[kTrain + 1] = {{"/home/me/model.py", "head", 8, nullptr, false}};
        return made;
    }
    void SetUp() override {
        Storages::begin_test();
        before_ = Storages::held();  // sessions of other tests live on
    }
    int held() const { return Storages::held() - before_; }
    void TearDown() override {
        for (const auto& [storage, count] : Storages::pinned) EXPECT_EQ(count, 0);
    }

    static std::vector<float> filled(float value, float first) {
        std::vector<float> values(kLarge, value);
        values[0] = first;
        return values;
    }
    static json findings(Played& r) {
        r.session->finish(0);
        const json found = r.read()["findings"];
        r.remove();
        return found;
    }

    MadeUp x{filled(1, -1)}, y{filled(0, kNan)}, z{filled(0, kNan)}, loss{kNan};
    int before_ = 0;
};

TEST_F(LookBack, NamesTheOpWhoseResultIsStillThere) {
    for (const char* tier : {"tier=sentinel", "tier=boundary"}) {
        Played& r = play(tier);
        r.op(kLog, {x.view()}, {y.returned()});
        r.stacks.now = kTrain + 1;
        r.op(kMul, {y.view()}, {z.returned()});
        r.op(kMean, {z.view()}, {loss.returned()});
        r.loss(loss);
        const json found = findings(r);
        ASSERT_EQ(found.size(), 1u) << tier;
        EXPECT_EQ(found[0]["op"], "aten::log");
        EXPECT_EQ(found[0]["location"]["line"], 3);
        EXPECT_EQ(found[0]["mechanism"], "DOM");
        EXPECT_EQ(found[0]["inputs"][0]["min"], -1);
    }
}

TEST_F(LookBack, NamesAnOpWhoseResultIsGoneIfItsOperandsSayIt) {
    Played& r = play("tier=sentinel");
    r.op(kLog, {x.view()}, {y.returned()});
    r.stacks.now = kTrain + 1;
    r.op(kMul, {y.view()}, {z.returned()});
    Storages::dead = {&y};
    r.op(kMean, {z.view()}, {loss.returned()});
    r.loss(loss);
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u) << "what was made of it is no birth";
    EXPECT_EQ(found[0]["op"], "aten::log");
    EXPECT_EQ(found[0]["location"]["line"], 3);
}

TEST_F(LookBack, SaysWhatItCouldNotSee) {
    Played& r = play("tier=sentinel");
    r.op(kLog, {x.view()}, {y.returned()});
    r.stacks.now = kTrain + 1;
    r.op(kMul, {y.view()}, {z.returned()});
    Storages::dead = {&x, &y};
    r.op(kMean, {z.view()}, {loss.returned()});
    r.loss(loss);
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "aten::log") << "a product of finite values is none";
    const std::string evidence = found[0]["evidence"].dump();
    EXPECT_NE(evidence.find(
                  "1 operand was gone when the tier looked back at this op: an op before it may have made the value"),
              std::string::npos)
        << evidence;
    EXPECT_NE(evidence.find("its result was gone, too: what was computed from it is bad, by ops that only hand on what "
                            "they read"),
              std::string::npos)
        << evidence;
}

TEST_F(LookBack, WhatWasWrittenSinceIsNotBlamedOnTheOpBefore) {
    Played& r = play("tier=sentinel");
    MadeUp a{filled(1, 1)}, b{filled(1, 1)};
    r.op(kMul, {a.view()}, {b.returned()});
    b.values[0] = kNan;  // by the next op, which divides in place
    r.stacks.now = kTrain + 1;
    r.op(kDiv, {b.view(), a.view()}, {b.written()});
    r.op(kMean, {b.view()}, {loss.returned()});
    r.loss(loss);
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "aten::div");
}

TEST_F(LookBack, MemoryThatWasExchangedUnderAStorageIsNotRead) {
    Played& r = play("tier=sentinel");
    MadeUp fine{filled(1, 1)};
    r.op(kLog, {fine.view()}, {y.returned()});  // its result would be read, and blamed
    Storages::exchanged = {&y};
    r.stacks.now = kTrain + 1;
    r.op(kMul, {y.view()}, {z.returned()});
    r.op(kMean, {z.view()}, {loss.returned()});
    r.loss(loss);
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "aten::mul");
}

TEST_F(LookBack, WhatOnlyMakesZerosIsNotBlamed) {
    Played& r = play("tier=sentinel");
    const OpInfo zeros{"aten::zeros", "", OpClass::Other, false, 9};
    r.op(zeros, {}, {y.returned()});  // a NaN came in without an operator
    r.stacks.now = kTrain + 1;
    r.op(kMean, {y.view()}, {loss.returned()});
    r.loss(loss);
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "external");
}

TEST_F(LookBack, OpsOverListsAreFollowedPlaceByPlace) {
    for (const size_t count : {2u, 6u}) {
        Played& r = play("tier=sentinel");
        const OpInfo logs{"aten::_foreach_log", "", OpClass::Other, false, 10};
        MadeUp a{filled(1, 1)}, fine{filled(0, 0)};
        std::vector<TensorView> inputs(count, a.view()), outputs(count, fine.returned());
        inputs[count - 1] = x.view();
        outputs[count - 1] = y.returned();
        r.op(logs, inputs, outputs);
        r.stacks.now = kTrain + 1;
        r.op(kMean, {y.view()}, {loss.returned()});
        r.loss(loss);
        const json found = findings(r);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0]["op"], "aten::_foreach_log");
        ASSERT_EQ(found[0]["inputs"].size(), 1u) << "its own, no other member's";
        EXPECT_EQ(found[0]["inputs"][0]["min"], -1);
    }
}

TEST_F(LookBack, OperandsThatFoundNoRoomAreSaidToBeGone) {
    Played& r = play("tier=sentinel");
    MadeUp a{filled(1, 1)};
    std::vector<TensorView> inputs(LoggedOp::kMaxInputs + 2, a.view());
    r.op(kMm, inputs, {y.returned()});
    r.op(kMean, {y.view()}, {loss.returned()});
    r.loss(loss);
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0]["evidence"].dump().find("2 operands were gone"), std::string::npos) << found[0]["evidence"];
}

TEST_F(LookBack, AForkedChildForgetsTheOpsOfItsParent) {
    Played& r = play("tier=sentinel");
    r.op(kLog, {x.view()}, {y.returned()});
    r.session->before_fork();
    r.session->after_fork_in_child();
    r.op(kMean, {y.view()}, {loss.returned()});
    r.loss(loss);
    r.session->finish(0);
    const json report = r.read();
    for (const json& found : report["findings"]) EXPECT_NE(found["op"], "aten::log");
    r.remove();
}

TEST_F(LookBack, HealthyStepsReadLittleAndSaySo) {
    Played& r = play("tier=sentinel");
    MadeUp a{filled(1, 1)}, b{filled(2, 2)}, fine{2};
    for (int step = 0; step < 3; ++step) {
        for (int i = 0; i < 5; ++i) r.op(kMul, {a.view()}, {b.returned()});
        r.op(kMean, {b.view()}, {fine.returned()});
        r.loss(fine);
        EXPECT_GT(held(), 0);
        r.session->scope_begin("Optimizer.step#SGD.step");
        r.session->scope_end("Optimizer.step#SGD.step");
        EXPECT_EQ(held(), 0) << "a step that ended well is forgotten";
    }
    r.session->finish(0);
    const json report = r.read();
    EXPECT_EQ(report["findings"].size(), 0u);
    EXPECT_EQ(report["coverage"]["skipped"]["tier"], 15);
    r.remove();
}

TEST_F(LookBack, AGradientNamesTheOpOfItsBackward) {
    Played& r = play("tier=sentinel");
    MadeUp parameter{filled(1, 1), kRequiresGrad | kLeaf}, upstream{filled(1, kInf)}, gradient{filled(1, kNan)};
    MadeUp fine{2};
    r.op(kMm, {x.view(), parameter.view()}, {fine.returned()}, 7);
    r.loss(fine);
    r.node("MmBackward0", 7);
    r.op(kMul, {parameter.view()}, {upstream.returned()});
    r.op(kMm, {upstream.view(), x.view()}, {gradient.returned()});
    r.session->node_end();
    r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &gradient, &parameter);
    r.session->node_end();
    r.session->scope_begin("Optimizer.step#SGD.step");
    r.session->scope_end("Optimizer.step#SGD.step");
    const json found = findings(r);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "aten::mul");
    EXPECT_EQ(found[0]["phase"], "backward");
    EXPECT_EQ(found[0]["forward"]["op"], "aten::mm");
}

TEST_F(LookBack, AfterAnAlarmEveryOutputIsReadForAWhile) {
    Played& r = play("tier=sentinel");
    r.op(kLog, {x.view()}, {y.returned()});
    r.op(kMean, {y.view()}, {loss.returned()});
    r.loss(loss);
    MadeUp a{filled(1, 1)}, b{filled(2, 2)};
    for (int64_t step = 0; step <= TierPolicy::kAlarmSteps; ++step) {
        r.op(kMul, {a.view()}, {b.returned()});
        r.session->scope_begin("Optimizer.step#SGD.step");
        r.session->scope_end("Optimizer.step#SGD.step");
    }
    r.op(kMul, {a.view()}, {b.returned()});
    r.session->finish(0);
    EXPECT_EQ(r.read()["coverage"]["skipped"]["tier"], 2) << "the log's before the alarm, the last one after it";
    r.remove();
}

TEST_F(LookBack, IntendedInfinitiesAreNoAlarm) {
    Played& r = play("tier=boundary");
    MadeUp scores{filled(1, 1)}, masked{filled(1, -kInf)}, product{filled(1, 1)};
    for (int i = 0; i < 3; ++i) {
        r.op(kMaskedFill, {scores.view()}, {masked.returned()});
        r.op(kMm, {masked.view(), scores.view()}, {product.returned()});
    }
    EXPECT_EQ(findings(r).size(), 0u);
}

TEST_F(LookBack, TheLogIsBounded) {
    Played& r = play("tier=sentinel");
    MadeUp a{filled(1, 1)}, b{filled(2, 2)};
    for (size_t i = 0; i < OpLog::kOps + 100; ++i) r.op(kMul, {a.view()}, {b.returned()});
    EXPECT_EQ(held(), 2 * static_cast<int>(OpLog::kOps));
    r.session->scope_begin("Optimizer.step#SGD.step");
    r.session->scope_end("Optimizer.step#SGD.step");
    EXPECT_EQ(held(), 0);
    r.remove();
}

}  // namespace
}  // namespace numsan
