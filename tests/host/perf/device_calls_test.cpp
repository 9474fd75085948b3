// Made-up training loops with a device: what its ops take of the host's time.
#include "host/perf/device_calls.h"

#include <gtest/gtest.h>

#include "tests/host/perf/made_training.h"

namespace numsan {
namespace {

TEST(DeviceCalls, WaitForADeviceIsNamedWithItsLine) {
    MadeTraining loop;
    const auto on_device = [&](const char* name, OpClass op_class, int64_t ns, bool waits, StackId line) {
        MadeUpOp made(name, {loop.activation.view()}, {}, op_class);
        made.inputs[0].device = Device::Cuda;
        OpEvent event = made.event();
        event.on_device = true;
        if (waits) loop.watch.waits();
        loop.event(event, ns, line);
    };
    loop.steps(12, [&] {
        loop.forward();
        on_device("aten::mul", OpClass::Other, 3 * kMs, false, 30);
        on_device("aten::_local_scalar_dense", OpClass::HostRead, 5 * kMs, true, 31);
        on_device("aten::nonzero", OpClass::Other, 2 * kMs, false, 32);
    });
    EXPECT_EQ(loop.found(), "NP101:31 NP101:32");
    const SlowRun run = loop.run();
    EXPECT_EQ(run.findings[0].measured,
              "`aten::_local_scalar_dense` and its like wait 1 times a step, 5 ms of 20.1 ms (25 %)");
    ASSERT_EQ(run.not_measured.size(), 2u);
    EXPECT_EQ(run.not_measured[0],
              "what ops take on a device: of them only the host's waits and small copies are seen");
    EXPECT_EQ(run.not_measured[1], "time between steps: with a device it may be spent waiting for it, which is no op");
}

TEST(DeviceCalls, ManySmallCopiesToADeviceAreAFinding) {
    const auto found = [](int copies, int64_t numel, const char* between = nullptr, OpClass its = OpClass::Other) {
        MadeTraining loop;
        MadeUp there{1, 2};
        loop.steps(12, [&] {
            loop.forward();
            for (int i = 0; i < copies; ++i) {
                MadeUpOp made("aten::_to_copy", {loop.activation.view()}, {there.returned()});
                made.inputs[0].numel = made.outputs[0].numel = numel;
                made.outputs[0].device = Device::Cuda;
                OpEvent event = made.event();
                event.on_device = true;
                loop.event(event, kMs, 30);
                if (between == nullptr) continue;
                MadeUpOp next(between, {there.view()}, {its == OpClass::Other ? there.written() : there.view()}, its);
                OpEvent after = next.event();
                after.on_device = true;
                loop.event(after, 0, 31);
            }
        });
        return loop.found();
    };
    EXPECT_EQ(found(8, 64), "NP114:30") << "the first one, which may wait, costs nothing";
    EXPECT_EQ(found(7, 64), "") << "a batch and what belongs to it";
    EXPECT_EQ(found(8, 1 << 20), "") << "they are large";
    EXPECT_EQ(found(8, 64, "aten::lift_fresh", OpClass::Constant), "NP114:30") << "it asks nothing of the device";
    EXPECT_EQ(found(8, 64, "aten::empty", OpClass::Allocation), "NP114:30") << "nor does new memory";
    EXPECT_EQ(found(8, 64, "aten::relu_"), "") << "each copy may wait for the op before it";
}

TEST(DeviceCalls, WhatLiesBetweenStepsIsNoPauseWhereThereIsADevice) {
    MadeTraining loop;
    MadeUpOp made("aten::mul", {loop.activation.view()}, {});
    OpEvent on_device = made.event();
    on_device.on_device = true;
    loop.steps(12, [&] {
        MadeLoop::now += 50 * kMs;  // torch.cuda.synchronize()
        loop.forward();
        loop.event(on_device, kMs, 30);
    });
    EXPECT_EQ(loop.found(), "");
}

TEST(DeviceCalls, WaitOfAnOpThatThrewIsNotTheNextOnes) {
    MadeTraining loop;
    MadeUp value{1};
    MadeUpOp made("aten::_to_copy", {loop.activation.view()}, {value.returned()});
    OpEvent to_host = made.event();
    to_host.on_device = true;
    loop.steps(12, [&] {
        loop.forward();
        loop.watch.waits();
        loop.watch.op_begins();  // and throws
        loop.event(to_host, 5 * kMs, 31);
    });
    EXPECT_EQ(loop.found(), "");
}

}  // namespace
}  // namespace numsan
