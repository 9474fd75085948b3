// A session over made-up events and stacks: what it reports, how it ends, forks and threads.
#include "host/session/session.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/host/analyze/fake_stacks.h"
#include "tests/host/analyze/made_up.h"

namespace numsan {
namespace {

using nlohmann::json;

constexpr StackId kModel = 1, kMakeGrads = 2, kTrain = 3;

const OpInfo kLog{"aten::log", "", OpClass::Other, false, 0};
const OpInfo kMul{"aten::mul", "", OpClass::Other, false, 1};
const OpInfo kDiv{"aten::div", "", OpClass::Other, false, 2};
const OpInfo kAdd{"aten::add_", "Tensor", OpClass::Other, true, 5};
const OpInfo kOnesLike{"aten::ones_like", "", OpClass::Constant, false, 3};
const OpInfo kItem{"aten::_local_scalar_dense", "", OpClass::HostRead, false, 4};

/// A session lives as long as the process, and so do its parts and those of the tests.
struct Played {
    CpuScanner scanner;
    FakeStacks stacks;
    std::string report;
    Session* session = nullptr;

    explicit Played(const char* options = "", const char* python_version = "") {
        static std::atomic<int> number{0};
        report = testing::TempDir() + "numsan_session_" + std::to_string(getpid()) + "_" + std::to_string(++number) +
                 ".json";
        stacks.stacks[kModel] = {{"/home/me/model.py", "forward", 3, nullptr, false}};
        stacks.stacks[kMakeGrads] = {{"/env/torch/autograd/__init__.py", "_make_grads", 9, nullptr, false},
                                     {"/home/me/train.py", "main", 44, nullptr, false}};
        stacks.stacks[kTrain] = {{"/home/me/train.py", "main", 40, nullptr, false}};
        Options made;
        std::vector<std::string> complaints;
        parse(options, made, complaints);
        EXPECT_TRUE(complaints.empty());
        if (made.report == Options().report) made.report = report;
        made.log = "none";
        SessionFacts facts;
        facts.torch_version = "2.11.0";
        facts.torch_root = "/env/torch";
        facts.python_version = python_version;
        facts.blind_spots = {"a blind spot"};
        session = new Session(made, scanner, stacks, facts);
    }

    /// Made for the whole process, see above.
    static Played& make(const char* options = "", const char* python_version = "") {
        static std::vector<Played*>& all = *new std::vector<Played*>;
        all.push_back(new Played(options, python_version));
        return *all.back();
    }

    void op(const OpInfo& info, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
            uint64_t sequence = ~uint64_t(0), uint64_t thread = 1) {
        OpEvent event{};
        event.op = &info;
        event.inputs = inputs.data();
        event.outputs = outputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.output_count = static_cast<int32_t>(outputs.size());
        event.thread = thread;
        event.forward_sequence = sequence;
        event.grad_enabled = true;
        session->op_end(event);
    }

    /// In place, with gradients off.
    void update(const MadeUp& parameter, const MadeUp& gradient) {
        const TensorView inputs[] = {parameter.view(), gradient.view()};
        const TensorView output = parameter.written();
        OpEvent event{};
        event.op = &kAdd;
        event.inputs = inputs;
        event.outputs = &output;
        event.input_count = 2;
        event.output_count = 1;
        event.forward_sequence = ~uint64_t(0);
        event.graph_task = -1;
        session->op_end(event);
    }

    void node(const char* name, uint64_t sequence, const MadeUp* gradient = nullptr, const MadeUp* variable = nullptr,
              uint64_t thread = 1) {
        TensorView input{}, leaf{};
        NodeEvent event{};
        event.name = name;
        event.sequence = sequence;
        event.forward_thread = thread;
        if (gradient != nullptr) {
            input = gradient->view();
            event.inputs = &input;
            event.input_count = 1;
        }
        if (variable != nullptr) {
            leaf = variable->view();
            event.variable = &leaf;
        }
        session->node_begin(event);
    }

    void loss(const MadeUp& value) {
        MadeUp ones{1};
        const StackId before = stacks.now;
        stacks.now = kMakeGrads;
        op(kOnesLike, {value.view()}, {ones.returned()});
        stacks.now = before;
    }

    void log_of_negative() {
        MadeUp x{-1}, y{kNan};
        op(kLog, {x.view()}, {y.returned()});
        loss(y);
    }

    static json read(const std::string& path) {
        std::ifstream in(path);
        return in ? json::parse(in, nullptr, false) : json();
    }
    json read() const { return read(report); }
    void remove() const { std::remove(report.c_str()); }
};

TEST(Session, ReportsALossAndCountsTheRun) {
    Played& r = Played::make();
    r.session->scope_begin("Optimizer.step#SGD.step");
    r.session->scope_end("Optimizer.step#SGD.step");
    r.log_of_negative();
    const json early = r.read();
    ASSERT_TRUE(early.is_object()) << "the report is written as soon as there is a finding";
    r.session->skipped("wrapper");
    EXPECT_EQ(r.session->finish(0), 0);
    const json report = r.read();
    ASSERT_EQ(report["findings"].size(), 1u);
    const json& finding = report["findings"][0];
    EXPECT_EQ(finding["op"], "aten::log");
    EXPECT_EQ(finding["step"], 1);
    EXPECT_EQ(finding["location"]["file"], "/home/me/model.py");
    EXPECT_EQ(finding["location"]["line"], 3);
    EXPECT_EQ(report["run"]["pid"], getpid());
    EXPECT_EQ(r.stacks.look_ups.load(), 1);
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

TEST(Session, CountsWhatCouldNotBeLookedAtByReason) {
    Played& r = Played::make();
    const std::string sparse = "sparse";  // equal texts are one reason, wherever they lie
    r.session->skipped("sparse");
    r.session->skipped(sparse.c_str());
    r.session->skipped("meta");
    static const char* const kMany[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    for (const char* why : kMany) r.session->skipped(why);
    EXPECT_EQ(r.session->finish(0), 0);
    const json skipped = r.read()["coverage"]["skipped"];
    EXPECT_EQ(skipped["sparse"], 2);
    EXPECT_EQ(skipped["meta"], 1);
    EXPECT_EQ(skipped["i"], 1);
    EXPECT_EQ(skipped["other"], 2) << "none is lost when there are more reasons than room";
    r.remove();
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
