// A training step in a CUDA graph: most of it is looked at by turns, and what is found names the op all the same.
#include <vector>

#include "tests/host/device/on_device.h"
#include "tests/host/event/storages.h"

namespace numsan {
namespace {

const OpInfo kMeanOf{"aten::mean", "", OpClass::Other, false, 6};

/// Scans take turns, and none has its own: what is looked at each time has to do.
class GraphReplays : public testing::Test {
  protected:
    void SetUp() override { Storages::begin_test(); }
    void TearDown() override {
        for (const auto& [storage, count] : Storages::pinned) EXPECT_EQ(count, 0);
    }
    explicit GraphReplays(const char* options = "warmup=0") : d(options) {
        d.session.use(Storages::kAdapter);
        d.scanner.takes_turns = true;
        loss.flags = total.flags = kRequiresGrad;
    }

    void capture_forward() {
        d.scanner.captures = true;
        d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
        d.op(kMul, {on_device(y.view())}, {on_device(z.returned())}, 4);
        d.op(kMeanOf, {on_device(z.view())}, {on_device(loss.returned())}, 5);
        d.loss(loss);
        d.scanner.captures = false;
    }
    /// The quotient's gradient, which a leaf gets.
    void capture_backward() {
        d.scanner.captures = true;
        d.op(kDiv, {on_device(z.view()), on_device(z.view())}, {on_device(gradient.returned())});
        d.reaches(on_device(gradient.view()), on_device(parameter.view()));
        d.scanner.captures = false;
    }
    /// What the graph computes.
    void compute() {
        for (size_t i = 0; i < x.values.size(); ++i) {
            y.values[i] = std::log(x.values[i]);
            z.values[i] = y.values[i] * 2;
        }
        loss.values[0] = (z.values[0] + z.values[1]) / 2;
        d.scanner.replay();
        d.read(loss);
    }
    json finding() {
        const json report = d.finish();
        EXPECT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
        return report["findings"].empty() ? json::object() : report["findings"][0];
    }

    OnDevice d;
    MadeUp x{1, 2}, y{0, 1}, z{0, 2}, loss{1}, total{3}, gradient{1, 2}, parameter{1, 2};
};

TEST_F(GraphReplays, AHealthyGraphIsSilent) {
    capture_forward();
    capture_backward();
    for (int i = 0; i < 3; ++i) compute();
    const json report = d.finish();
    EXPECT_EQ(report["findings"].size(), 0u);
    EXPECT_EQ(report["verdict"], "clean");
}

TEST_F(GraphReplays, ABadLossNamesTheOpThatIsStillThere) {
    capture_forward();
    compute();
    x.values[0] = -1;
    compute();
    const json found = finding();
    EXPECT_EQ(found["op"], "aten::log");
    EXPECT_EQ(found["mechanism"], "DOM");
    EXPECT_EQ(found["inputs"][0]["min"], -1) << found.dump(1);
}

TEST_F(GraphReplays, WhatStaysBadIsToldOnce) {
    Storages::dead = {&y};
    capture_forward();
    x.values[0] = -1;
    d.scanner.takes_turns = false;  // the first replay looks in full
    compute();
    d.scanner.takes_turns = true;
    for (int i = 0; i < 5; ++i) compute();
    EXPECT_EQ(finding()["op"], "aten::log");
}

TEST_F(GraphReplays, WhatComesAgainIsAsGoodAsNew) {
    capture_forward();
    x.values[0] = -1;
    d.scanner.takes_turns = false;
    compute();
    d.scanner.takes_turns = true;
    x.values[0] = 1;
    compute();
    compute();
    z.values[1] = kNan;  // another op's, in the storage that the first one had reached
    loss.values[0] = kNan;
    d.scanner.replay();
    d.read(loss);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 2u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
    EXPECT_EQ(report["findings"][1]["op"], "aten::mul");
}

TEST_F(GraphReplays, WhereThatIsGoneTheNextOneIsNamed) {
    Storages::dead = {&y};
    capture_forward();
    x.values[0] = -1;
    compute();
    const json found = finding();
    EXPECT_EQ(found["op"], "aten::mul") << found.dump(1);
    EXPECT_NE(found["mechanism"], "DOM");
}

TEST_F(GraphReplays, WhatIsWrittenAgainIsNotLookedAt) {
    d.scanner.captures = true;
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.op(kMul, {on_device(y.view())}, {on_device(y.written())}, 4);
    d.op(kMeanOf, {on_device(y.view())}, {on_device(loss.returned())}, 5);
    d.loss(loss);
    d.scanner.captures = false;
    y.values[0] = loss.values[0] = kNan;
    d.scanner.replay();
    d.read(loss);
    EXPECT_EQ(finding()["op"], "aten::mul") << "what log left is not there any more";
}

TEST_F(GraphReplays, ABadGradientNamesTheOpThatMadeIt) {
    capture_forward();
    capture_backward();
    gradient.values[0] = kNan;
    compute();
    d.session.scope_begin("Optimizer.step#SGD.step");
    d.op(kMul, {on_device(parameter.view()), on_device(gradient.view())}, {on_device(parameter.written())});
    d.session.scope_end("Optimizer.step#SGD.step");
    const json found = finding();
    EXPECT_EQ(found["op"], "aten::div") << found.dump(1);
}

TEST_F(GraphReplays, AParameterThatIsWrittenIsLookedAtEachTime) {
    parameter.flags = kParameter;
    capture_forward();
    d.scanner.captures = true;
    d.op(kDiv, {on_device(z.view()), on_device(z.view())}, {on_device(gradient.returned())});
    d.op(kMul, {on_device(parameter.view()), on_device(gradient.view())}, {on_device(parameter.written())});
    d.scanner.captures = false;
    gradient.values[0] = parameter.values[0] = kNan;
    compute();
    const json found = finding();
    EXPECT_EQ(found["op"], "aten::div") << "what the op read was bad, and nobody had looked: " << found.dump(1);
}

TEST_F(GraphReplays, TwoGraphsAreKeptApart) {
    capture_forward();
    MadeUp other{1, 2};
    d.scanner.captures = true;
    d.scanner.capture = 8;
    d.op(kLog, {on_device(x.view())}, {on_device(other.returned())}, 3);
    d.op(kMeanOf, {on_device(other.view())}, {on_device(total.returned())}, 5);
    d.loss(total);
    d.scanner.captures = false;
    compute();
    EXPECT_EQ(d.scanner.behind_gate(), 5u) << "three of the first, two of the second";
    EXPECT_EQ(d.finish()["findings"].size(), 0u);
}

/// With the whole budget nothing takes turns.
class GraphsInFull : public GraphReplays {
  protected:
    GraphsInFull() : GraphReplays("tier=full:budget=0") {}
};

TEST_F(GraphsInFull, EachOpIsLookedAtAndNothingTwice) {
    capture_forward();
    capture_backward();
    EXPECT_EQ(d.scanner.scans, 6) << "three of the forward pass, its loss, the first gradient and the next";
    EXPECT_EQ(d.scanner.behind_gate(), 0u);
    x.values[0] = -1;
    compute();
    EXPECT_EQ(finding()["op"], "aten::log");
}

}  // namespace
}  // namespace numsan
