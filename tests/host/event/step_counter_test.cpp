// Steps of loops that have no Optimizer.step scope.
#include "host/event/step_counter.h"

#include <gtest/gtest.h>

#include <vector>

namespace numsan {
namespace {

const OpInfo kOp{"aten::add_", "Tensor", OpClass::Other, true, 0};
constexpr uint32_t kParameter = kRequiresGrad | kLeaf;

/// A training loop in miniature: one parameter, its storage, a gradient.
struct Loop {
    StepCounter steps;
    int thread = 0, parameter = 0, gradient = 0;

    static TensorView view(const int& storage, uint32_t flags = 0) {
        TensorView made{};
        made.storage = &storage;
        made.flags = flags;
        return made;
    }
    void op(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs, bool gradients,
            bool on_state = false, int64_t graph_task = -1, const void* on = nullptr) {
        OpEvent event{};
        event.op = &kOp;
        event.inputs = inputs.data();
        event.outputs = outputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.output_count = static_cast<int32_t>(outputs.size());
        event.grad_enabled = gradients;
        event.graph_task = graph_task;
        if (on == nullptr) on = &thread;
        const int64_t before = steps.count();
        const bool ends = steps.awaits_forward() && steps.forward(event, on, on_state);
        EXPECT_EQ(steps.count() - before, ends ? 1 : 0);
        if (steps.awaits_update()) steps.update(event, on);
    }
    void forward() { op({view(parameter, kParameter)}, {}, true); }
    void backward() {
        steps.node(nullptr);
        steps.node(&parameter);
    }
    void update(uint32_t flags = kParameter, bool gradients = false) {
        op({view(parameter, flags), view(gradient)}, {view(parameter, flags | kWritten)}, gradients, true);
    }
};

TEST(StepCounter, AnUpdateAfterABackwardIsAStepOnceTheNextForwardBegins) {
    Loop loop;
    for (int step = 0; step < 5; ++step) {
        loop.forward();
        EXPECT_EQ(loop.steps.count(), step);
        loop.backward();
        EXPECT_EQ(loop.steps.count(), step);
        loop.update();
        loop.update();
        EXPECT_EQ(loop.steps.count(), step) << "the update may go on";
    }
    loop.steps.finish();
    loop.steps.finish();
    EXPECT_EQ(loop.steps.count(), 5);
}

TEST(StepCounter, TheNextBackwardEndsAStepToo) {
    Loop loop;
    loop.backward();
    loop.update();
    loop.backward();
    EXPECT_EQ(loop.steps.count(), 1);
}

TEST(StepCounter, AccumulatedBackwardsAreOneStep) {
    Loop loop;
    for (int part = 0; part < 3; ++part) {
        loop.forward();
        loop.backward();
    }
    loop.update();
    loop.forward();
    EXPECT_EQ(loop.steps.count(), 1);
}

TEST(StepCounter, WritesBeforeAnyBackwardAreInitialisation) {
    Loop loop;
    loop.update();
    loop.forward();
    loop.steps.finish();
    EXPECT_EQ(loop.steps.count(), 0);
}

TEST(StepCounter, NoStepWithoutAWrite) {
    Loop loop;
    for (int i = 0; i < 3; ++i) {
        loop.forward();
        loop.backward();
        loop.op({Loop::view(loop.gradient)}, {Loop::view(loop.gradient, kWritten)}, false, true);
    }
    loop.steps.finish();
    EXPECT_EQ(loop.steps.count(), 0);
}

TEST(StepCounter, WritesInsideABackwardAreNotItsEnd) {
    Loop loop;
    loop.backward();
    loop.op({}, {Loop::view(loop.parameter, kParameter | kWritten)}, false, false, 7);
    loop.forward();
    EXPECT_EQ(loop.steps.count(), 0);
}

TEST(StepCounter, AParameterIsKnownByItsStorage) {
    Loop loop;  // parameter.data -= rate * parameter.grad, with gradients on
    for (int step = 0; step < 3; ++step) {
        loop.backward();
        loop.op({Loop::view(loop.gradient)}, {}, true, true);
        loop.update(0, true);
        loop.update(0, true);
        EXPECT_EQ(loop.steps.count(), step);
        int batch = 0;
        loop.op({Loop::view(batch)}, {}, true);
        EXPECT_EQ(loop.steps.count(), step + 1);
    }
}

TEST(StepCounter, WhatIsComputedWithGradientsOffDoesNotBeginAForward) {
    Loop loop;
    loop.backward();
    loop.update();
    loop.op({Loop::view(loop.parameter, kParameter)}, {}, false);
    EXPECT_EQ(loop.steps.count(), 0);
}

TEST(StepCounter, AnotherThreadsOpsDoNotEndTheUpdate) {
    Loop loop;
    const int worker = 0;
    loop.backward();
    loop.update();
    loop.op({}, {}, true, false, -1, &worker);
    EXPECT_EQ(loop.steps.count(), 0);
    loop.op({}, {}, true);
    EXPECT_EQ(loop.steps.count(), 1);
}

TEST(StepCounter, OnceAnOptimizerWasSeenOnlyScopesCount) {
    Loop loop;
    loop.backward();
    loop.update();  // by hand, beside an optimizer
    loop.steps.optimizer_begins();
    loop.update();
    loop.steps.optimizer_ends();
    EXPECT_EQ(loop.steps.count(), 1);
    loop.backward();
    loop.update();
    loop.forward();
    loop.steps.finish();
    EXPECT_EQ(loop.steps.count(), 1);
}

TEST(StepCounter, ManyParametersFindRoom) {
    StepCounter steps;
    std::vector<double> parameters(4000);
    for (const double& parameter : parameters) steps.node(&parameter);
    int missed = 0;
    for (const double& parameter : parameters) {
        TensorView output{};
        output.storage = &parameter;
        output.flags = kWritten;
        OpEvent event{};
        event.graph_task = -1;
        event.outputs = &output;
        event.output_count = 1;
        steps.node(nullptr);
        if (steps.awaits_update()) steps.update(event, &steps);
        missed += steps.awaits_forward() ? 0 : 1;
    }
    EXPECT_EQ(missed, 0);
}

TEST(StepCounter, AParameterAfterVeryManyThatAreGoneIsKnown) {
    Loop loop;
    const std::vector<double> gone(100000);
    for (const double& parameter : gone) loop.steps.node(&parameter);
    for (int step = 0; step < 3; ++step) {
        loop.backward();
        loop.update(0, true);
        int batch = 0;
        loop.op({Loop::view(batch)}, {}, true);
        EXPECT_EQ(loop.steps.count(), step + 1);
    }
}

}  // namespace
}  // namespace numsan
