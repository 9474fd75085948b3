// Gradients wait for each other, and never longer than somebody can do without them.
#include "host/device/gathered_gradients.h"

#include "tests/host/device/on_device.h"
#include "tests/host/event/storages.h"

namespace numsan {
namespace {

const StorageApi kStorages = Storages::kAdapter.storages;

DeviceQueue queue(uintptr_t stream, int16_t device = 0, bool known = true) {
    return {reinterpret_cast<void*>(stream), device, known};
}

OpEvent op_in(const DeviceQueue& queue, int64_t graph_task = 0) {
    OpEvent event{};
    event.queue = queue;
    event.graph_task = graph_task;
    return event;
}

TEST(GatheredGradients, WaitUntilSomebodyIsToActUponThem) {
    HeldScanner scanner;
    GatheredGradients gradients(scanner, &kStorages);
    EXPECT_EQ(gradients.hold(queue(0)), nullptr) << "not in the first step";
    gradients.step();
    EXPECT_EQ(scanner.flushes, 0) << "nothing waits";
    EXPECT_EQ(gradients.hold(queue(0)), &kStorages);
    gradients.held(OpSeq{5});
    EXPECT_EQ(gradients.hold(queue(0)), &kStorages);
    gradients.held(OpSeq{7});
    gradients.pass(op_in(queue(0)), OpSeq{8});
    EXPECT_EQ(scanner.flushes, 0);
    gradients.step();
    EXPECT_EQ(scanner.flushes, 1);
    gradients.flush();
    EXPECT_EQ(scanner.flushes, 1);
    gradients.held(OpSeq{9});
    gradients.pass(op_in(queue(0), -1), OpSeq{10});
    EXPECT_EQ(scanner.flushes, 2) << "the backward is over";
}

TEST(GatheredGradients, DoNotKeepTheOpsBehindThemWaiting) {
    HeldScanner scanner;
    GatheredGradients gradients(scanner, &kStorages);
    gradients.held(OpSeq{5});
    for (int64_t op = 6; op <= 5 + 1024; ++op) gradients.pass(op_in(queue(0)), OpSeq{op});
    EXPECT_EQ(scanner.flushes, 0);
    for (int64_t op = 5 + 1025; op < 5 + 4096; ++op) gradients.pass(op_in(queue(0)), OpSeq{op});
    EXPECT_EQ(scanner.flushes, 1);
}

TEST(GatheredGradients, NeverWaitOnceASecondQueueWasSeen) {
    for (const DeviceQueue& other : {queue(64), queue(0, 1)}) {
        HeldScanner scanner;
        GatheredGradients gradients(scanner, &kStorages);
        gradients.step();
        EXPECT_NE(gradients.hold(queue(0)), nullptr);
        gradients.held(OpSeq{1});
        gradients.pass(op_in(queue(0, 0, false)), OpSeq{2});
        EXPECT_EQ(scanner.flushes, 0) << "an unknown queue is none";
        gradients.pass(op_in(other), OpSeq{3});
        EXPECT_EQ(scanner.flushes, 1);
        EXPECT_EQ(gradients.hold(queue(0)), nullptr);
        EXPECT_EQ(gradients.hold(other), nullptr);
        EXPECT_EQ(gradients.hold(queue(0, 0, false)), nullptr);
    }
}

TEST(GatheredGradients, NothingWaitsThatCannotBeHeld) {
    HeldScanner scanner;
    GatheredGradients gradients(scanner, nullptr);
    gradients.step();
    EXPECT_EQ(gradients.hold(queue(0)), nullptr);
}

/// A loop whose second gradient is bad; only gradients are handed over to wait.
TEST(GatheredGradients, OfASessionAreToldWhenTheOptimizerBegins) {
    Storages::begin_test();
    OnDevice d("warmup=0:tier=full:budget=0.000001");
    d.session.use(Storages::kAdapter);
    MadeUp weight{1}, bias{1}, good{2}, bad{kNan};
    weight.flags = bias.flags = kParameter;
    d.op(kMul, {on_device(weight.view())}, {on_device(good.returned())}, 3);
    d.op(kMul, {on_device(bias.view())}, {on_device(bad.returned())}, 4);
    d.session.scope_begin("Optimizer.step#SGD.step");
    d.session.scope_end("Optimizer.step#SGD.step");
    const auto reaches = [&](const MadeUp& gradient, const MadeUp& parameter) {
        TensorView input = on_device(gradient.view()), leaf = on_device(parameter.view());
        NodeEvent node{};
        node.name = "torch::autograd::AccumulateGrad";
        node.inputs = &input;
        node.input_count = 1;
        node.variable = &leaf;
        node.queue = queue(0);
        d.session.node_begin(node);
        d.session.node_end();
    };
    reaches(good, weight);
    reaches(bad, bias);
    EXPECT_EQ(d.scanner.gathered, 2);
    EXPECT_EQ(d.scanner.scans, 2) << "nothing else is read";
    EXPECT_EQ(d.scanner.flushes, 0);
    d.session.scope_begin("Optimizer.step#SGD.step");
    EXPECT_EQ(d.scanner.flushes, 1);
    d.session.scope_end("Optimizer.step#SGD.step");
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["escape"]["into"], "gradient");
}

}  // namespace
}  // namespace numsan
