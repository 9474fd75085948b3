// A made-up loop with backward passes on a made-up clock: what is said of gradients that nothing reads.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/host/perf/made_loop.h"

namespace numsan {
namespace {

/// A step of 10 ms, of which 4 ms are for the gradient of a body that is not updated.
class Training : public MadeLoop {
  public:
    MadeUp head{{1, 2}, kParameter}, body{{1, 2, 3}, kParameter}, batch{1}, for_head{1, 2}, for_body{1, 2, 3};
    int64_t ended = 0;
    bool on_device = false;

    void op(const char* name, std::vector<TensorView> in, std::vector<TensorView> out, int64_t ns, StackId line,
            int64_t pass = -1, bool ignored = false) {
        const MadeUpOp made(name, std::move(in), std::move(out));
        OpEvent event = made.event();
        event.graph_task = pass;
        event.on_device = on_device && pass == -1;
        event.grad_enabled = line != 3;
        run(event, ns, line, ignored);
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
            op("aten::randn", {}, {batch.returned()}, 3 * kMs, 1);
            watch.node_begins(NodeEvent{});
            op("aten::mm", {batch.view()}, {for_head.returned()}, kMs, 2, i);
            hand(head, for_head);
            watch.node_begins(NodeEvent{});
            op("aten::mm", {batch.view()}, {for_body.returned()}, 4 * kMs, 2, i);
            hand(body, for_body);
            between();
            watch.optimizer_begins(3);
            head.values[0] += 1;
            op("aten::add_", {head.view(), for_head.view()}, {head.written()}, 2 * kMs, 3);
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
