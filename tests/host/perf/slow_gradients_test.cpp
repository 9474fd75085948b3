// A made-up loop with backward passes on a made-up clock: what is said of gradients that nothing reads.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "host/perf/slow_watch.h"
#include "tests/host/verdict/fake_stacks.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

std::atomic<int64_t> pass_now{1};
constexpr int64_t kPassMs = 1'000'000;

/// A step of 10 ms, of which 4 ms are for the gradient of a body that is not updated.
class Training {
  public:
    Lineage lineage;
    FakeStacks stacks;
    std::atomic<int64_t> ops{1};
    SlowWatch watch{lineage, stacks, ops, []() noexcept { return pass_now.load(); }};
    MadeUp head{{1, 2}, kParameter}, body{{1, 2, 3}, kParameter}, batch{1}, for_head{1, 2}, for_body{1, 2, 3};
    int64_t ended = 0;
    bool on_device = false;

    Training() {
        for (int line = 1; line < 9; ++line)
            stacks.stacks[static_cast<StackId>(line)] = {{"/home/me/train.py", "main", line, nullptr, false}};
    }
    void op(const char* name, std::vector<TensorView> in, std::vector<TensorView> out, int64_t ns, StackId line,
            int64_t pass = -1, bool ignored = false) {
        const MadeUpOp made(name, std::move(in), std::move(out));
        static std::map<std::string, OpInfo> operators;  // live for ever, as the adapter's do
        OpEvent event = made.event();
        event.op = &operators.try_emplace(name, made.info).first->second;
        event.graph_task = pass;
        event.on_device = on_device && pass == -1;
        event.grad_enabled = line != 3;
        stacks.now = line;
        watch.op_begins();
        pass_now += ns;
        watch.op_ended(event, ignored);
        const OpSeq seq{ops.fetch_add(1)};
        for (int32_t i = 0; i < event.output_count; ++i) lineage.add(event, event.outputs[i], Range{}, seq, line, 0);
        watch.op_taken(event);
    }
    void hand(const MadeUp& parameter, const MadeUp& gradient) {
        const TensorView variable = parameter.view();
        const TensorView incoming = gradient.view();
        NodeEvent event{};
        event.inputs = &incoming;
        event.input_count = 1;
        event.variable = &variable;
        watch.node_begins(event);
        lineage.mark_gradient(incoming.storage);
    }
    template <class Between>
    std::string found(Between&& between) {
        for (int i = 0; i < 12; ++i) {
            batch.values[0] += 1;
            op("aten::randn", {}, {batch.returned()}, 3 * kPassMs, 1);
            watch.node_begins(NodeEvent{});
            op("aten::mm", {batch.view()}, {for_head.returned()}, kPassMs, 2, i);
            hand(head, for_head);
            watch.node_begins(NodeEvent{});
            op("aten::mm", {batch.view()}, {for_body.returned()}, 4 * kPassMs, 2, i);
            hand(body, for_body);
            between();
            watch.optimizer_begins(3);
            head.values[0] += 1;
            op("aten::add_", {head.view(), for_head.view()}, {head.written()}, 2 * kPassMs, 3);
            watch.optimizer_ends();
            watch.steps_are(++ended);
        }
        std::string text;
        for (const SlowFinding& one : watch.run(PlaceFinder("/env/torch")).findings)
            text += std::string(info(one.cause).code) + ": " + one.measured;
        return text;
    }
};

TEST(SlowGradients, GradientsThatNothingReadsAreAFinding) {
    Training training;
    EXPECT_EQ(training.found([] {}),
              "NP108: the backward pass goes on for 4 ms of 10 ms (40 %) after the last gradient that is read");
}

TEST(SlowGradients, WhatIsReadInARangeOfWhichNothingIsSaidIsRead) {
    Training training;
    EXPECT_EQ(training.found([&] { training.op("aten::norm", {training.for_body.view()}, {}, 0, 4, -1, true); }), "");
}

TEST(SlowGradients, AnotherThreadMayReadAny) {
    Training training;
    EXPECT_EQ(training.found([&] {
        std::thread([&] { training.op("aten::norm", {training.for_body.view()}, {}, 0, 4); }).join();
    }),
              "");
}

TEST(SlowGradients, NothingIsSaidWhereOpsRunOnADevice) {
    Training training;
    training.on_device = true;
    EXPECT_EQ(training.found([] {}), "");
}

}  // namespace
}  // namespace numsan
