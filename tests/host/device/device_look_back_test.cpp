// Tiers on a device: little is read, and what is left of the rest is looked at when a value that leaves is bad.
#include <memory>
#include <vector>

#include "tests/host/device/on_device.h"
#include "tests/host/event/storages.h"

namespace numsan {
namespace {

const OpInfo kMean{"aten::mean", "", OpClass::Other, false, 6};
const OpInfo kRelu{"aten::relu", "", OpClass::Preserving, false, 7};
const OpInfo kMaskedFill{"aten::masked_fill", "", OpClass::Constant, false, 8};
const OpInfo kSub{"aten::sub", "", OpClass::Other, false, 9};

/// Nothing is paid for: a budget that no round can live on.
constexpr char kLean[] = "tier=full:budget=0.000001:warmup=0";

class DeviceLookBack : public testing::Test {
  protected:
    void SetUp() override { Storages::begin_test(); }
    void TearDown() override {
        for (const auto& [storage, count] : Storages::pinned) EXPECT_EQ(count, 0);
    }
    static OnDevice lean(const char* options = kLean) {
        OnDevice d(options);
        d.session.use(Storages::kAdapter);
        d.played.stacks.stacks[kTrain + 1] = {{"/home/me/model.py", "head", 8, nullptr, false}};
        return d;
    }
    void log_then_mean(OnDevice& d) {
        d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
        d.played.stacks.now = kTrain + 1;
        d.op(kMul, {on_device(y.view())}, {on_device(z.returned())}, 4);
        d.op(kMean, {on_device(z.view())}, {on_device(loss.returned())}, 5);
        d.loss(loss);
    }

    MadeUp x{-1, 2}, y{kNan, 1}, z{kNan, 2}, loss{kNan};
};

TEST_F(DeviceLookBack, AHealthyStepReadsWhatLeavesAndNothingElse) {
    OnDevice d = lean();
    MadeUp a{1, 2}, b{3, 4}, mean{5};
    for (int i = 0; i < 3; ++i) {
        d.op(kMul, {on_device(a.view())}, {on_device(b.returned())}, 3);
        d.op(kMean, {on_device(b.view())}, {on_device(mean.returned())}, 4);
        d.loss(mean);
    }
    EXPECT_EQ(d.scanner.scans, 3);
    EXPECT_EQ(d.scanner.looks_back, 3);
    const json report = d.finish();
    EXPECT_EQ(report["findings"].size(), 0u);
    EXPECT_GT(d.scanner.given_up, 0);
    EXPECT_EQ(report["coverage"]["skipped"]["tier"], 9);
}

TEST_F(DeviceLookBack, WhatWasWrittenSeveralTimesIsAskedForOnce) {
    OnDevice d = lean();
    MadeUp a{1, 2}, b{3, 4}, mean{5};
    for (int i = 0; i < 5; ++i) d.op(kMul, {on_device(b.view()), on_device(a.view())}, {on_device(b.written())});
    d.op(kMean, {on_device(b.view())}, {on_device(mean.returned())}, 4);
    d.loss(mean);
    EXPECT_EQ(d.finish()["findings"].size(), 0u);
    EXPECT_EQ(d.scanner.looks_back, 1);
    EXPECT_EQ(d.scanner.given_up, 2);
}

TEST_F(DeviceLookBack, ABadLossNamesTheOpWhoseResultIsStillThere) {
    OnDevice d = lean();
    log_then_mean(d);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    const json& finding = report["findings"][0];
    EXPECT_EQ(finding["op"], "aten::log");
    EXPECT_EQ(finding["mechanism"], "DOM");
    EXPECT_EQ(finding["inputs"][0]["min"], -1) << finding.dump(1);
    EXPECT_EQ(finding["location"]["line"], 3);
}

/// After a look back there is none for a moment, or a program that reads many values would wait for them.
TEST_F(DeviceLookBack, AValueThatIsReadAMomentAfterAnotherNamesTheOpThatWroteIt) {
    OnDevice d = lean();
    std::vector<std::unique_ptr<MadeUp>> healthy;  // to ask for all of them takes so long that the pause is one
    for (int i = 0; i < 400; ++i) {
        healthy.push_back(std::unique_ptr<MadeUp>(new MadeUp{2}));
        d.op(kMul, {on_device(x.view())}, {on_device(healthy.back()->returned())});
    }
    d.read(*healthy.back());
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.read(y);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

TEST_F(DeviceLookBack, AWriteOfAnotherPartIsNotBlamed) {
    OnDevice d = lean();
    MadeUp losses{kNan, 1};
    const auto part = [&](int i, TensorView view) {
        static constexpr int64_t kOne = 1;
        view.data = losses.values.data() + i;
        view.numel = 1;
        view.sizes = &kOne;
        return on_device(view);
    };
    std::vector<std::unique_ptr<MadeUp>> healthy;
    for (int i = 0; i < 400; ++i) {
        healthy.push_back(std::unique_ptr<MadeUp>(new MadeUp{2}));
        d.op(kMul, {on_device(x.view())}, {on_device(healthy.back()->returned())});
    }
    d.read(*healthy.back());
    d.op(kLog, {on_device(x.view())}, {part(0, losses.written())}, 3);
    d.op(kMul, {on_device(x.view())}, {part(1, losses.written())}, 4);
    d.session.before_wait();
    d.op(kItem, {part(0, losses.view())}, {});
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_NE(report["findings"][0]["op"], "aten::mul");  // a look back of its own knows writes by storages only
}

TEST_F(DeviceLookBack, AResultThatIsGoneIsToldByItsOperands) {
    OnDevice d = lean();
    Storages::dead = {&y, &z};
    log_then_mean(d);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
    EXPECT_EQ(report["findings"][0]["inputs"][0]["min"], -1);
}

TEST_F(DeviceLookBack, WhatOnlyHandsOnIsNotBlamedForOperandsThatAreGone) {
    OnDevice d = lean();
    Storages::dead = {&x, &y, &z};
    log_then_mean(d);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
    EXPECT_NE(report["findings"][0]["evidence"].dump().find("its result was gone, too"), std::string::npos);
}

TEST_F(DeviceLookBack, AnInfinityThatWasWrittenDownIsFollowedToTheOpThatMadeANanOfIt) {
    OnDevice d = lean();
    MadeUp scores{1, 2}, masked{kNegInf, kNegInf}, kept{kNegInf, kNegInf}, shifted{kNan, kNan};
    Storages::dead = {&scores, &masked, &kept, &shifted};
    d.fill(kMaskedFill, {on_device(scores.view())}, {on_device(masked.returned())});
    d.op(kRelu, {on_device(masked.view())}, {on_device(kept.returned())});
    d.played.stacks.now = kTrain + 1;
    d.op(kSub, {on_device(kept.view()), on_device(kept.view())}, {on_device(shifted.returned())});
    d.op(kMean, {on_device(shifted.view())}, {on_device(loss.returned())});
    d.loss(loss);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::sub");
    EXPECT_EQ(report["findings"][0]["mechanism"], "INDET");
}

TEST_F(DeviceLookBack, WhatWasWrittenSinceIsNotBlamedOnTheOpBefore) {
    OnDevice d = lean();
    MadeUp a{1, 1}, b{kNan, 1};
    d.op(kMul, {on_device(a.view())}, {on_device(b.returned())}, 3);
    d.op(kDiv, {on_device(b.view()), on_device(a.view())}, {on_device(b.written())}, 4);
    d.op(kMean, {on_device(b.view())}, {on_device(loss.returned())}, 5);
    d.loss(loss);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["op"], "aten::div");
}

TEST_F(DeviceLookBack, AfterABadValueEveryOutputIsReadForAWhile) {
    OnDevice d = lean();
    log_then_mean(d);
    d.read(loss);
    const int before = d.scanner.scans;
    MadeUp a{1, 2}, b{3, 4};
    d.op(kMul, {on_device(a.view())}, {on_device(b.returned())}, 3);
    EXPECT_EQ(d.scanner.scans, before + 1);
    d.finish();
}

TEST_F(DeviceLookBack, ABadGradientNamesTheLastOpThatCouldHaveMadeIt) {
    OnDevice d = lean();
    MadeUp quotient{kNan, 1}, gradient{kNan, 1}, parameter{1, 2};
    parameter.flags = kParameter;
    Storages::dead = {&quotient};
    d.op(kDiv, {on_device(x.view()), on_device(x.view())}, {on_device(quotient.returned())}, 3);
    d.op(kMul, {on_device(quotient.view())}, {on_device(gradient.returned())}, 4);
    d.reaches(on_device(gradient.view()), on_device(parameter.view()));
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::div");
}

TEST_F(DeviceLookBack, NeitherIsWhatAnotherDeviceHasLookedBackAt) {
    OnDevice d = lean();
    MadeUp there{1, 2}, made{kNan, 1};
    TensorView other = on_device(there.view());
    other.device_index = 1;
    d.op(kMul, {other, on_device(made.view())}, {on_device(made.returned())}, 3);
    d.op(kMean, {on_device(made.view())}, {on_device(loss.returned())}, 5);
    d.loss(loss);
    d.finish();
    EXPECT_EQ(d.scanner.seen_devices, std::set<int>{0});
}

TEST_F(DeviceLookBack, TensorsOfAnotherDeviceAreNotHandedToTheQueue) {
    OnDevice d("tier=full:budget=0");
    MadeUp here{kNan, 1}, there{1, 2}, made{kNan, 3};
    TensorView other = on_device(there.view());
    other.device_index = 1;
    d.op(kMul, {other, on_device(here.view())}, {on_device(made.returned())}, 3);
    EXPECT_EQ(d.scanner.inputs, 1);
    TensorView result = on_device(there.returned());
    result.device_index = 1;
    d.op(kMul, {on_device(here.view())}, {result}, 3);
    EXPECT_EQ(d.scanner.scans, 1);
    EXPECT_EQ(d.finish()["coverage"]["skipped"]["another device"], 1);
}

}  // namespace
}  // namespace numsan
