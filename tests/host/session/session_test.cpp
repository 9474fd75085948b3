// A session over made-up events and stacks: what it reports, how it ends, forks and threads.
#include "tests/host/session/played.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
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
json crowded_run(const char* options, double value, int steps, const char* node = nullptr) {
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
    const json findings = crowded_run("", 40000, 4);
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
    EXPECT_EQ(crowded_run("", 30000, 4).size(), 0u);
    EXPECT_EQ(crowded_run("headroom=0.4", 30000, 4).size(), 1u);
    EXPECT_EQ(crowded_run("headroom=0", 40000, 4).size(), 0u);
    EXPECT_EQ(crowded_run("", 40000, 2).size(), 0u) << "two batches out of line";
    EXPECT_EQ(crowded_run("", 40000, 4, "MmBackward0").size(), 0u) << "a loss scale puts gradients there";
    EXPECT_EQ(crowded_run("history=2", 40000, 4)[0]["history"].size(), 2u);
}

TEST(Session, WithoutPythonAnUpdateThatFollowsABackwardIsAStep) {
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
        EXPECT_EQ(r.read()["run"]["steps"], python[0] == '\0' ? 3 : 0) << "Python's optimizers say so themselves";
        r.remove();
    }
}

/// Every op is scanned, or left out for one reason.
void expect_that_it_adds_up(const json& coverage) {
    int64_t ops = coverage["scanned"];
    for (const auto& [why, count] : coverage["skipped"].items()) ops += count.get<int64_t>();
    EXPECT_EQ(ops, coverage["ops"]) << coverage;
    EXPECT_FALSE(coverage["skipped"].contains("not judged yet")) << coverage;
}

TEST(Session, CountsWhatCouldNotBeLookedAtByReason) {
    Played& r = Played::make();
    const auto unseen = [&](const char* why) {
        r.session->skipped(why);
        r.op(kMul, {}, {});
    };
    const std::string sparse = "sparse";  // equal texts are one reason, wherever they lie
    unseen("sparse");
    unseen(sparse.c_str());
    unseen("meta");
    static const char* const kMany[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    for (const char* why : kMany) unseen(why);
    EXPECT_EQ(r.session->finish(0), 0);
    const json coverage = r.read()["coverage"];
    const json& skipped = coverage["skipped"];
    EXPECT_EQ(skipped["sparse"], 2);
    EXPECT_EQ(skipped["meta"], 1);
    EXPECT_EQ(skipped["i"], 1);
    EXPECT_EQ(skipped["other"], 2) << "none is lost when there are more reasons than room";
    expect_that_it_adds_up(coverage);
    r.remove();
}

TEST(Session, EveryOpCountsOnce) {
    Played& r = Played::make();
    const OpInfo empty{"aten::empty", "", OpClass::Allocation, false, 11};
    const OpInfo reduce{"c10d::allreduce_", "", OpClass::Collective, true, 12};
    MadeUp x{1}, y{2}, index{3};
    TensorView integers = index.returned();
    integers.flags &= ~uint32_t(kScannable);
    r.op(kMul, {x.view()}, {y.returned(), x.returned()});  // two outputs are one op
    r.op(kMul, {x.view()}, {y.returned(), integers});      // with an index beside the values
    r.op(kMul, {x.view()}, {integers, integers});
    r.op(empty, {}, {y.returned()});
    r.op(reduce, {y.view()}, {y.written()});
    r.op(kMul, {x.view()}, {});
    r.session->skipped("sparse");
    r.session->skipped("sparse");  // of the same op
    r.op(kMul, {x.view()}, {y.returned()});
    EXPECT_EQ(r.session->finish(0), 0);
    const json coverage = r.read()["coverage"];
    EXPECT_EQ(coverage["ops"], 7);
    EXPECT_EQ(coverage["scanned"], 2);
    EXPECT_EQ(coverage["bytes"], 16) << "what was read of an op that is not counted as scanned was read";
    EXPECT_EQ(coverage["skipped"],
              (json{{"integer", 1}, {"allocation", 1}, {"collective", 1}, {"without output", 1}, {"sparse", 1}}));
    r.remove();
}

TEST(Session, ABadOutputOfATierThatReadsLittleCountsOnce) {
    Played& r = Played::make("tier=sentinel");
    MadeUp x{-1}, y{kNan};
    std::vector<float> large(TierPolicy::kTinyBytes, 1);
    MadeUp unread(large);
    r.op(kLog, {x.view()}, {y.returned(), unread.returned()});
    EXPECT_EQ(r.session->finish(0), 0);
    expect_that_it_adds_up(r.read()["coverage"]);
    EXPECT_EQ(r.read()["coverage"]["ops"], 1);
    EXPECT_EQ(r.read()["run"]["tier"], "sentinel");
    r.remove();
}

TEST(Session, BeginsWithAReportThatSaysItHasNotEnded) {
    Played& r = Played::make();
    r.session->begin_report();
    const json early = r.read();
    ASSERT_TRUE(early.is_object());
    EXPECT_EQ(early["verdict"], "incomplete");
    EXPECT_EQ(early["run"]["ended"], nullptr);
    EXPECT_NE(early["coverage"]["blind_spots"].back().get<std::string>().find("had not ended"), std::string::npos);
    EXPECT_EQ(r.session->finish(0), 0);
    const json last = r.read();
    EXPECT_EQ(last["verdict"], "clean");
    EXPECT_EQ(last["coverage"]["blind_spots"].size(), 1u) << last["coverage"];
    EXPECT_EQ(last["run"]["tier"], "full");
    EXPECT_EQ(last["run"]["tiers"], (json{{"cpu", "full"}}));
    r.remove();
}

/// As a process that has nothing to say yet finds it.
std::string begun_over(const std::string& before) {
    Played& r = Played::make();
    std::ofstream(r.report) << before;
    r.session->begin_report();
    std::stringstream after;
    after << std::ifstream(r.report).rdbuf();
    r.remove();
    return after.str();
}

TEST(Session, BeginsOverWhatAnEndedProcessLeftOnly) {
    const pid_t ended = fork();
    if (ended == 0) _exit(0);
    waitpid(ended, nullptr, 0);
    const auto of = [](pid_t pid) {
        Played& r = Played::make();
        r.session->begin_report();
        json report = r.read();
        r.remove();
        report["run"]["pid"] = pid;
        return report.dump();
    };
    EXPECT_NE(begun_over(of(ended)), of(ended)) << "a run of before";
    EXPECT_NE(begun_over(""), "") << "a name that was reserved";
    const std::string parents = of(getppid());
    EXPECT_EQ(begun_over(parents), parents) << "a process that runs may have found something";
    EXPECT_EQ(begun_over("not a report"), "not a report");
}

TEST(Session, BeginsInSilenceWhereItCannotWrite) {
    Played& r = Played::make("report=/nonexistent/report.json");
    r.session->begin_report();
    EXPECT_EQ(r.session->finish(0), 0);
    Played& none = Played::make("report=none");
    none.session->begin_report();
    EXPECT_TRUE(none.read().is_null());
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
    EXPECT_TRUE(r.read().is_null());
    r.session->scope_begin("Optimizer.step#SGD.step");
    const json report = r.read();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["phase"], "backward");
    EXPECT_EQ(report["findings"][0]["location"]["file"], "/home/me/model.py");
    EXPECT_EQ(report["findings"][0]["forward"]["op"], "aten::sqrt");
    EXPECT_EQ(report["findings"][0]["escape"]["name"], "head.weight");
    EXPECT_EQ(report["findings"][0]["contaminated"][0]["name"], "head.weight");
    r.session->scope_end("Optimizer.step#SGD.step");
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
