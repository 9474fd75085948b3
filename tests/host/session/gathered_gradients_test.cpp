// Gradients wait for each other, and never longer than somebody can do without them.
#include "host/session/gathered_gradients.h"

#include "tests/host/session/on_device.h"
#include "tests/host/session/storages.h"

namespace numsan {
namespace {

const StorageApi kStorages = Storages::kAdapter.storages;

DeviceQueue queue(uintptr_t stream, int16_t device = 0, bool known = true) {
    return {reinterpret_cast<void*>(stream), device, known};
}

TEST(GatheredGradients, WaitUntilSomebodyIsToActUponThem) {
    HeldScanner scanner;
    GatheredGradients gradients(scanner, &kStorages);
    gradients.flush();
    EXPECT_EQ(scanner.flushes, 0) << "nothing waits";
    EXPECT_EQ(gradients.hold(queue(0), 5), &kStorages);
    EXPECT_EQ(gradients.hold(queue(0), 7), &kStorages);
    gradients.pass(queue(0), 8);
    EXPECT_EQ(scanner.flushes, 0);
    gradients.flush();
    EXPECT_EQ(scanner.flushes, 1);
    gradients.flush();
    EXPECT_EQ(scanner.flushes, 1);
}

TEST(GatheredGradients, DoNotKeepTheOpsBehindThemWaiting) {
    HeldScanner scanner;
    GatheredGradients gradients(scanner, &kStorages);
    gradients.hold(queue(0), 5);
    for (int64_t op = 6; op <= 5 + 1024; ++op) gradients.pass(queue(0), op);
    EXPECT_EQ(scanner.flushes, 0);
    for (int64_t op = 5 + 1025; op < 5 + 4096; ++op) gradients.pass(queue(0), op);
    EXPECT_EQ(scanner.flushes, 1);
}

TEST(GatheredGradients, NeverWaitOnceASecondQueueWasSeen) {
    for (const DeviceQueue& other : {queue(64), queue(0, 1)}) {
        HeldScanner scanner;
        GatheredGradients gradients(scanner, &kStorages);
        gradients.hold(queue(0), 1);
        gradients.pass(queue(0, 0, false), 2);
        EXPECT_EQ(scanner.flushes, 0) << "an unknown queue is none";
        gradients.pass(other, 3);
        EXPECT_EQ(scanner.flushes, 1);
        EXPECT_EQ(gradients.hold(queue(0), 4), nullptr);
        EXPECT_EQ(gradients.hold(other, 5), nullptr);
        EXPECT_EQ(gradients.hold(queue(0, 0, false), 6), nullptr);
    }
}

TEST(GatheredGradients, NothingWaitsThatCannotBeHeld) {
    HeldScanner scanner;
    GatheredGradients gradients(scanner, nullptr);
    EXPECT_EQ(gradients.hold(queue(0), 1), nullptr);
}

/// A loop whose second gradient is bad; only gradients are handed over to wait.
TEST(GatheredGradients, OfASessionAreToldWhenTheOptimizerBegins) {
    Storages::begin_test();
    OnDevice d("warmup=0:tier=full:budget=0.000001");
    d.session.use(Storages::kAdapter);
    MadeUp weight{1}, bias{1}, good{2}, bad{kNan};
    weight.flags = bias.flags = kParameter;
    const auto reaches = [&](const MadeUp& gradient, const MadeUp& parameter) {
        d.op(kMul, {on_device(parameter.view())}, {on_device(gradient.returned())}, 3);
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
