// A session over made-up events and stacks: what it reports, how it ends, forks and threads.
#include "tests/host/session/played.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

TEST(Session, ReportsALossAndCountsTheRun) {
    Played& r = Played::make();
    r.session->scope_begin("Optimizer.step#SGD.step");
    r.session->scope_end("Optimizer.step#SGD.step");
    r.log_of_negative();
    const json early = r.read();
    ASSERT_TRUE(early.is_object()) << "the report is written as soon as there is a finding";
    EXPECT_EQ(r.session->finish(0), 0);
    const json report = r.read();
    ASSERT_EQ(report["findings"].size(), 1u);
    const json& finding = report["findings"][0];
    EXPECT_EQ(finding["op"], "aten::log");
    EXPECT_EQ(finding["step"], 1);
    EXPECT_EQ(finding["location"]["file"], "/home/me/model.py");
    EXPECT_EQ(finding["location"]["line"], 3);
    EXPECT_EQ(report["run"]["pid"], getpid());
    EXPECT_EQ(r.stacks.look_ups.load(), 2) << "for the finding, and at the end for what it reached";
    r.remove();
}

TEST(Session, OpsThatHandOnAFindingAskAutogradNothing) {
    static int asked;
    Played& r = Played::make();
    MadeUp x{-1}, y({kNan}, kRequiresGrad), z{kNan};
    r.op(kLog, {x.view()}, {y.returned()});
    const TensorView input = y.view(), output = z.returned();
    OpEvent event{};
    event.op = &kMul;
    event.inputs = &input;
    event.outputs = &output;
    event.input_count = event.output_count = 1;
    event.forward_sequence = ~uint64_t(0);
    event.graph_task = -1;
    event.autograd_facts = [](const void*, bool) {
        ++asked;
        return uint32_t(0);
    };
    r.session->op_end(event);
    EXPECT_EQ(asked, 1) << "before there is a finding its operands may be part of it";
    r.loss(z);
    r.session->op_end(event);
    EXPECT_EQ(asked, 1);
    r.session->finish(0);
    EXPECT_EQ(r.read()["findings"].size(), 1u);
    r.remove();
}

TEST(Session, CleanRunHasAReportWithoutFindings) {
    Played& r = Played::make("fail_on=warning");
    MadeUp x{1}, y{2};
    for (int i = 0; i < 10; ++i) r.op(kMul, {x.view()}, {y.returned()});
    r.loss(y);
    EXPECT_EQ(r.session->finish(0), 0);
    EXPECT_EQ(r.session->finish(0), 0) << "the second end is no end";
    EXPECT_EQ(r.read()["findings"].size(), 0u);
    EXPECT_EQ(r.stacks.look_ups.load(), 0) << "names are looked up for findings only";
    r.remove();
}

/// A product in half of a parameter, in every step.
json near_overflow_run(const char* options, double value, int steps, const char* node = nullptr) {
    Played& r = Played::make(options, "3.11.7");
    static const OpInfo mm{"aten::mm", "", OpClass::Other, false, 9};
    MadeUpHalf a{200, 180}, b({200, 150}, kParameter), large{value, 1};
    for (int step = 0; step < steps; ++step) {
        if (node != nullptr) r.node(node, 1);
        r.op(mm, {a.view(), b.view()}, {large.returned()});
        if (node != nullptr) r.session->node_end();
        r.session->scope_begin("Optimizer.step#SGD.step");
        r.session->scope_end("Optimizer.step#SGD.step");
    }
    r.session->finish(0);
    json findings = r.read()["findings"];
    r.remove();
    return findings;
}

TEST(Session, LittleHeadroomIsAWarning) {
    const json findings = near_overflow_run("", 40000, 4);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0]["kind"], "overflow");
    EXPECT_EQ(findings[0]["severity"], "warning");
    EXPECT_EQ(findings[0]["code"], "NS104");
    EXPECT_EQ(findings[0]["step"], 2);
    EXPECT_EQ(findings[0]["category"]["id"], "N8");
    EXPECT_EQ(findings[0]["history"].dump(),
              R"([{"absmax":40000.0,"step":0},{"absmax":40000.0,"step":1},{"absmax":40000.0,"step":2}])");
}

TEST(Session, HeadroomIsAnOptionAndNotForGradients) {
    EXPECT_EQ(near_overflow_run("", 30000, 4).size(), 0u);
    EXPECT_EQ(near_overflow_run("headroom=0.4", 30000, 4).size(), 1u);
    EXPECT_EQ(near_overflow_run("headroom=0", 40000, 4).size(), 0u);
    EXPECT_EQ(near_overflow_run("", 40000, 2).size(), 0u) << "two batches out of line";
    EXPECT_EQ(near_overflow_run("", 40000, 4, "MmBackward0").size(), 0u) << "a loss scale puts gradients there";
    EXPECT_EQ(near_overflow_run("history=2", 40000, 4)[0]["history"].size(), 2u);
}

TEST(Session, WhereNoOptimizerStepsAnUpdateThatFollowsABackwardDoes) {
    for (const char* python : {"", "3.11.7"}) {
        Played& r = Played::make("", python);
        MadeUp parameter{1}, gradient{2};
        parameter.flags = kRequiresGrad | kLeaf;
        for (int i = 0; i < 3; ++i) {
            r.op(kMul, {parameter.view(), parameter.view()}, {});
            r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &gradient, &parameter);
            r.session->node_end();
            r.update(parameter, gradient);
        }
        EXPECT_EQ(r.session->finish(0), 0);
        EXPECT_EQ(r.read()["run"]["steps"], 3) << python;
        r.remove();
    }
}

TEST(Session, SaysThatOperatorsAreSeenThroughRecordFunctions) {
    for (const char* hook : {"fallback", "record_function"}) {
        Played& r = Played::make();
        static AdapterApi adapters[2];
        AdapterApi& adapter = adapters[hook[0] == 'r'];
        adapter.hook = hook;
        r.session->use(adapter);
        EXPECT_EQ(r.session->finish(0), 0);
        const json spots = r.read()["coverage"]["blind_spots"];
        EXPECT_EQ(spots.size(), hook[0] == 'r' ? 2u : 1u) << spots;
        r.remove();
    }
}

TEST(Session, FailOnChangesAStatusOfZeroOnly) {
    Played& r = Played::make("fail_on=error:exitcode=9");
    r.log_of_negative();
    EXPECT_EQ(r.session->finish(0), 9);
    r.remove();
    Played& other = Played::make("fail_on=error:exitcode=9");
    other.log_of_negative();
    EXPECT_EQ(other.session->finish(3), 3);
    other.remove();
    Played& warning = Played::make("fail_on=error");
    MadeUp x{-1}, y{kNan};
    warning.op(kLog, {x.view()}, {y.returned()});
    warning.op(kItem, {y.view()}, {});
    EXPECT_EQ(warning.session->finish(0), 0) << "a warning is no error";
    EXPECT_EQ(warning.read()["findings"][0]["severity"], "warning");
    warning.remove();
}

TEST(Session, ReportsNoneWritesNothing) {
    Played& r = Played::make("report=none");
    r.log_of_negative();
    r.session->finish(0);
    EXPECT_FALSE(r.session->reporter().empty());
    EXPECT_TRUE(r.read().is_null());
}

TEST(Session, BackwardFindingPointsAtTheForwardOp) {
    Played& r = Played::make();
    MadeUp x{0}, y{1}, zero{0}, gradient{kInf};
    MadeUp weight({1}, kParameter);
    r.stacks.live.tensors[&weight] = {"head.weight", LiveNames::TensorName::Role::Parameter};
    r.stacks.live.tensors[&gradient] = {"head.weight", LiveNames::TensorName::Role::Gradient};
    const OpInfo sqrt{"aten::sqrt", "", OpClass::Other, false, 9};
    r.op(sqrt, {x.view(kRequiresGrad)}, {y.returned()}, 17);
    r.stacks.now = kTrain;
    r.node("SqrtBackward0", 17);
    r.op(kDiv, {y.view(), zero.view()}, {gradient.returned()});
    r.session->node_end();
    r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &gradient, &weight);
    r.session->node_end();
    r.session->scope_begin("Optimizer.step#SGD.step");
    EXPECT_TRUE(r.read().is_null()) << "whose step it is, is not known";
    weight.values = {-kInf};
    r.update(weight, gradient);
    const json report = r.read();
    r.session->scope_end("Optimizer.step#SGD.step");
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["phase"], "backward");
    EXPECT_EQ(report["findings"][0]["location"]["file"], "/home/me/model.py");
    EXPECT_EQ(report["findings"][0]["forward"]["op"], "aten::sqrt");
    EXPECT_EQ(report["findings"][0]["escape"]["name"], "head.weight");
    EXPECT_EQ(report["findings"][0]["contaminated"][0]["name"], "head.weight");
    r.session->finish(0);
    r.remove();
}

TEST(Session, NodeOfAnotherOpIsNotBlamed) {
    Played& r = Played::make();
    MadeUp x{1}, zero{0}, gradient{kInf};
    MadeUp weight({1}, kParameter);
    r.op(kMul, {x.view()}, {zero.returned()}, 17);
    r.node("SqrtBackward0", 17);
    r.op(kDiv, {x.view(), zero.view()}, {gradient.returned()});
    r.session->node_end();
    r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &gradient, &weight);
    r.session->node_end();
    r.session->finish(0);
    const json report = r.read();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_TRUE(!report["findings"][0].contains("forward") || report["findings"][0]["forward"].is_null());
    r.remove();
}

TEST(Session, NumberAtTheAddressOfAForgottenTensorIsANumber) {
    for (const bool number : {true, false}) {
        Played& r = Played::make();
        r.stacks.now = kTrain;
        MadeUp weight({1}, kParameter), reused{2}, x{-1}, scaled{-2}, y{kNan};
        r.op(kMul, {weight.view()}, {reused.returned()});
        r.op(kMul, {x.view(), reused.view(number ? kNumber : 0u)}, {scaled.returned()});
        r.op(kLog, {scaled.view()}, {y.returned()});
        r.loss(y);
        r.session->finish(0);
        const json report = r.read();
        ASSERT_EQ(report["findings"].size(), 1u);
        EXPECT_EQ(report["findings"][0]["phase"], number ? "data" : "forward");
        r.remove();
    }
}

TEST(Session, DeepNestingOfNodesIsSurvived) {
    Played& r = Played::make();
    for (uint64_t i = 0; i < 200; ++i) r.node("MulBackward0", i);
    r.log_of_negative();
    for (int i = 0; i < 300; ++i) r.session->node_end();
    r.node(
        "a name that is far longer than any name of a node that a program would give to a function of its own, and "
        "then some",
        1);
    r.session->node_end();
    r.session->finish(0);
    EXPECT_EQ(r.read()["findings"].size(), 1u);
    r.remove();
}

TEST(Session, IgnoredScope) {
    Played& r = Played::make();
    r.session->scope_begin("numsan:ignore");
    r.log_of_negative();
    r.session->scope_end("numsan:ignore");
    r.session->scope_end("numsan:ignore");
    r.session->finish(0);
    EXPECT_EQ(r.read()["findings"].size(), 0u);
    r.remove();
}

TEST(Session, RangesOfTheProgramAreInTheFinding) {
    Played& r = Played::make();
    r.session->range({RangeEvent::Kind::Start, false, 1, "epoch 3"});
    r.session->range({RangeEvent::Kind::Push, true, 0, "numsan:ignore"});
    r.log_of_negative();
    r.session->range({RangeEvent::Kind::Pop, false, 0, ""});
    r.session->range({RangeEvent::Kind::Push, false, 0, "decoder/attn"});
    r.log_of_negative();
    r.session->range({RangeEvent::Kind::Pop, false, 0, ""});
    r.session->range({RangeEvent::Kind::Stop, false, 1, ""});
    r.session->finish(0);
    const auto findings = r.read()["findings"];
    ASSERT_EQ(findings.size(), 1u);
    std::string ranges;
    for (const auto& frame : findings[0]["stack"]) {
        if (frame["kind"] == kRangeFrame) ranges += frame["function"].get<std::string>() + "|";
    }
    EXPECT_EQ(ranges, "decoder/attn|epoch 3|");
    r.remove();
}

TEST(Session, NewFindingsAreMarkedOnce) {
    static std::vector<std::string> marks;
    marks.clear();
    Played& r = Played::make();
    r.session->use_marks([](const Finding& finding) { marks.push_back(finding.id + " " + finding.op); });
    for (int i = 0; i < 3; ++i) r.log_of_negative();
    r.session->finish(0);
    ASSERT_EQ(r.read()["findings"].size(), 1u);
    EXPECT_EQ(marks, std::vector<std::string>{"F1 aten::log"});
    r.remove();
}

TEST(Session, FailureTurnsEverythingOff) {
    Played& r = Played::make();
    r.session->fail("a reason");
    r.session->fail("another");
    EXPECT_FALSE(r.session->on());
    r.log_of_negative();
    r.session->finish(0);
    EXPECT_EQ(r.read()["findings"].size(), 0u);
    EXPECT_NE(r.read().dump().find("incomplete"), std::string::npos);
    r.remove();
}

TEST(SessionDeathTest, HaltStopsAtTheFirstError) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            Played& r = Played::make("halt=1:exitcode=7:report=none");
            r.log_of_negative();
        },
        testing::ExitedWithCode(7), "");
}

TEST(Session, ForkWhileOtherThreadsHoldTheLocks) {
    const std::string pattern = testing::TempDir() + "numsan_fork_%p.json";
    Played& r = Played::make(("report=" + pattern).c_str());
    MadeUp x{-1}, y{kNan}, z{kNan};
    r.op(kLog, {x.view()}, {y.returned()});
    r.op(kItem, {y.view()}, {});
    std::atomic<bool> stop{false};
    std::atomic<int64_t> turns{0};
    std::thread busy([&] {
        while (!stop.load()) {
            r.op(kMul, {y.view()}, {z.returned()}, ~uint64_t(0), 2);
            ++turns;
        }
    });
    while (turns.load() < 10) std::this_thread::yield();
    for (int i = 0; i < 20; ++i) {
        r.session->before_fork();
        const pid_t child = fork();
        if (child == 0) {
            r.session->after_fork_in_child();
            alarm(60);  // a lock that nobody will ever release: end, and fail the test
            if (i == 0) r.log_of_negative();
            r.session->finish(0);
            const bool written =
                access((testing::TempDir() + "numsan_fork_" + std::to_string(getpid()) + ".json").c_str(), R_OK) == 0;
            _exit(written == (i == 0) ? 0 : 1);
        }
        r.session->after_fork_in_parent();
        ASSERT_GT(child, 0);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << i << " ended with " << status;
        const std::string path = testing::TempDir() + "numsan_fork_" + std::to_string(child) + ".json";
        if (i == 0) {
            const json report = Played::read(path);
            ASSERT_EQ(report["findings"].size(), 1u) << "the read that was pending is the parent's to report";
            EXPECT_EQ(report["run"]["pid"], child);
        }
        std::remove(path.c_str());
    }
    stop = true;
    busy.join();
    r.session->finish(0);
    const std::string own = testing::TempDir() + "numsan_fork_" + std::to_string(getpid()) + ".json";
    EXPECT_EQ(Played::read(own)["findings"].size(), 1u);
    std::remove(own.c_str());
}

TEST(Session, FourThreads) {
    Played& r = Played::make();
    constexpr int kTurns = 300;
    std::vector<std::thread> threads;
    for (uint64_t t = 1; t <= 4; ++t) {
        threads.emplace_back([&r, t] {
            for (int i = 0; i < kTurns; ++i) {
                MadeUp x{1, 2}, y{3, 4}, negative{-1, 1}, bad{kNan, 0}, kept{0, 0}, ones{1};
                MadeUp weight({kNan, 1}, kParameter);
                r.op(kMul, {x.view()}, {y.returned()}, static_cast<uint64_t>(i), t);
                r.op(kLog, {negative.view()}, {bad.returned()}, static_cast<uint64_t>(i) + 1000, t);
                r.node("LogBackward0", static_cast<uint64_t>(i) + 1000, &bad, &weight, t);
                r.op(kMul, {bad.view()}, {kept.returned()}, ~uint64_t(0), t);
                r.session->node_end();
                r.session->scope_begin("Optimizer.step#SGD.step");
                r.session->scope_end("Optimizer.step#SGD.step");
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    r.session->finish(0);
    const json report = r.read();
    ASSERT_FALSE(report["findings"].empty());
    EXPECT_EQ(report["run"]["steps"], 4 * kTurns);
    int64_t told = 0;
    for (const json& finding : report["findings"]) told += finding["count"].get<int64_t>();
    EXPECT_EQ(told, 4 * kTurns);
    r.remove();
}

}  // namespace
}  // namespace numsan
