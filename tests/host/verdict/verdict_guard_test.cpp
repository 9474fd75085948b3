// The verdict on programs that let go of a bad gradient, or cure it, before an optimizer reads it.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// The program does not step with a bad gradient, and lets go of it without telling an optimizer.
struct Guarded : Backward {
    MadeUp next{2};

    Guarded() { run(); }
    void next_backward() {
        s.op("aten::mul", {one.view()}, {next.returned()});
        s.accumulate(next, parameter);
    }
    /// By an optimizer that is given `with`, and by the end.
    Severity stepped(MadeUp& with) {
        s.assign(parameter, with);
        s.step();
        const bool error = !s.outcome.escaped.empty();
        s.finish();
        EXPECT_EQ(s.outcome.escaped.size(), 1u);
        EXPECT_EQ(error, s.only().severity == Severity::Error) << "a warning waits for the end";
        EXPECT_EQ(s.only().into, EscapeInto::Gradient);
        return s.only().severity;
    }
};

TEST(VerdictGuard, GradientThatAnotherReplacedIsAWarning) {
    Guarded g;
    g.next_backward();
    EXPECT_EQ(g.stepped(g.next), Severity::Warning);
}

TEST(VerdictGuard, GradientThatAnotherWasAddedToIsAnError) {
    for (const char* op : {"aten::add_", "aten::add"}) {
        Guarded g;
        MadeUp sum{kInf};
        g.next_backward();
        g.s.context.node = "torch::autograd::AccumulateGrad";
        if (std::string(op) == "aten::add_")
            g.s.op(op, {g.gradient.view(), g.next.view()}, {g.gradient.written()});
        else
            g.s.op(op, {g.gradient.view(), g.next.view()}, {sum.returned()});
        g.s.context.node = nullptr;
        EXPECT_EQ(g.stepped(std::string(op) == "aten::add_" ? g.gradient : sum), Severity::Error) << op;
    }
}

TEST(VerdictGuard, GradientThatWasCopiedToItsLeafLiesThere) {
    for (const bool zeroed : {false, true}) {
        Guarded g;
        MadeUp copy{kInf};
        g.s.context.node = "torch::autograd::AccumulateGrad";
        g.s.op("aten::clone", {g.gradient.view()}, {copy.returned()}, OpClass::Preserving);
        g.s.context.node = nullptr;
        g.gradient.values[0] = 1;  // its memory is used again
        g.s.op("aten::mul", {g.one.view()}, {g.gradient.returned()});
        if (zeroed) {
            copy.values[0] = 0;
            g.s.op("aten::zero_", {copy.view()}, {copy.written()}, OpClass::Overwriting);
        }
        EXPECT_EQ(g.stepped(copy), zeroed ? Severity::Warning : Severity::Error);
    }
}

TEST(VerdictGuard, GradientOfAnotherLeafReplacesNothing) {
    Guarded g;
    MadeUp other({1}, kParameter);
    g.s.op("aten::mul", {g.one.view()}, {g.next.returned()});
    g.s.accumulate(g.next, other);
    EXPECT_EQ(g.stepped(g.gradient), Severity::Error);
}

TEST(VerdictGuard, AtTheEndCountsWhatTheLeafStillHas) {
    enum { Alive, Dropped, Replaced, Unknown };
    for (const int left : {Alive, Dropped, Replaced, Unknown}) {
        Guarded g;
        EXPECT_TRUE(g.s.verdict.has_undecided_gradients());
        if (left == Alive) g.s.verdict.keep_gradients({{&g.parameter, {&g.gradient}}});
        if (left == Dropped) g.s.verdict.keep_gradients({{&g.parameter, {}}});
        if (left == Replaced) g.s.verdict.keep_gradients({{&g.parameter, {&g.next}}});
        if (left == Unknown) g.s.verdict.keep_gradients({});
        const bool gone = left == Dropped || left == Replaced;
        EXPECT_EQ(g.s.verdict.has_undecided_gradients(), !gone);
        g.s.finish();
        EXPECT_EQ(g.s.only().severity, gone ? Severity::Warning : Severity::Error) << left;
    }
}

TEST(VerdictGuard, AtTheEndOfATrainingTheLastBatchWasSkipped) {
    for (const bool by_hand : {false, true}) {
        Guarded g;
        if (by_hand)
            g.s.parameters.add(&g.parameter, 1, true, [] { return 1.0; });
        else
            g.s.verdict.optimizer_begin(g.s.outcome);
        g.s.finish();
        EXPECT_EQ(g.s.only().severity, Severity::Warning) << by_hand;
    }
}

TEST(VerdictGuard, LeavesThatAreMadeAnewLeaveRoomForOthers) {
    Backward b;
    std::deque<MadeUp> inputs;
    b.s.forward = {&b.sqrt, 9, 0, OpSeq{}};
    b.s.context.node = "SqrtBackward0";
    for (int64_t step = 1; step <= 5000; ++step) {
        b.s.context.step = step;
        b.s.op("aten::div", {b.one.view(), b.zero.view()}, {b.gradient.returned()});
        b.s.accumulate(b.gradient, inputs.emplace_back(std::vector<float>{1}, kParameter));
        b.s.verdict.zero_grad();
    }
    MadeUp next{kInf};
    b.s.forward = {&b.sqrt, 5, 0, OpSeq{}};
    b.s.op("aten::div", {b.one.view(), b.zero.view()}, {next.returned()});
    b.s.accumulate(next, b.parameter);
    b.s.context.node = nullptr;
    b.s.step({&b.parameter});
    ASSERT_FALSE(b.s.outcome.escaped.empty());
    EXPECT_EQ(b.s.outcome.escaped[0].into, EscapeInto::Gradient);
    EXPECT_EQ(b.s.outcome.escaped[0].birth.forward_stack, 5u);
}

TEST(VerdictGuard, GradientThatWasReplacedByAssignmentIsAWarning) {
    Guarded g;
    MadeUp cured{0};
    g.s.op("aten::nan_to_num", {g.gradient.view()}, {cured.returned()});
    EXPECT_EQ(g.stepped(cured), Severity::Warning);
    EXPECT_EQ(g.parameter.values[0], 1);
}

TEST(VerdictGuard, CopyThatIsNotCuredIsAnError) {
    Guarded g;
    MadeUp copy{kInf};
    g.s.op("aten::mul", {g.gradient.view(), g.one.view()}, {copy.returned()});
    EXPECT_EQ(g.stepped(copy), Severity::Error);
}

/// Two optimizers: a guard skips one of them, or nobody does.
TEST(VerdictGuard, StepOfAnotherOptimizerDecidesNothing) {
    for (const bool skipped : {true, false}) {
        Guarded g;
        MadeUp other({1}, kParameter), fine{2};
        g.s.op("aten::mul", {g.one.view()}, {fine.returned()});
        g.s.accumulate(fine, other);
        g.s.verdict.zero_grad();  // the other one's: whose it is, is not said
        g.s.step({&other});
        EXPECT_TRUE(g.s.outcome.escaped.empty());
        if (!skipped) g.s.step({&g.parameter});
        g.s.finish();
        EXPECT_EQ(g.s.only().severity, skipped ? Severity::Warning : Severity::Error);
        EXPECT_EQ(g.s.only().into, EscapeInto::Gradient);
    }
}

TEST(VerdictGuard, LookOfAnOptimizerThatLeavesItsLeavesAloneIsAWarning) {
    Guarded g;
    MadeUp norm{kInf};
    g.s.context.in_optimizer = true;
    g.s.op("aten::linalg_vector_norm", {g.gradient.view()}, {norm.returned()});
    g.s.context.in_optimizer = false;
    EXPECT_TRUE(g.s.outcome.escaped.empty());
    g.s.finish();
    EXPECT_EQ(g.s.only().severity, Severity::Error) << "nothing has ever been updated: the gradient is the result";
}

/// Its values cannot be looked at: a device's tier left them out.
TEST(VerdictGuard, UpdateThatNobodyReadIsTakenForOneUnlessItsGradientWasCured) {
    enum { Used, Cured, Zeroed };
    for (const int how : {Used, Cured, Zeroed}) {
        Guarded g;
        const OpInfo cure{how == Cured ? "aten::nan_to_num_" : "aten::zero_", "",
                          how == Cured ? OpClass::Other : OpClass::Overwriting, true, 90};
        const OpInfo add{"aten::add_", "Tensor", OpClass::Other, true, 91};
        const auto unread = [&](const OpInfo& op, std::vector<TensorView> inputs, TensorView output) {
            for (TensorView& input : inputs) input.flags &= ~uint32_t(kScannable);
            output.flags &= ~uint32_t(kScannable);
            OpEvent event{};
            event.op = &op;
            event.inputs = inputs.data();
            event.outputs = &output;
            event.input_count = static_cast<int32_t>(inputs.size());
            event.output_count = 1;
            event.graph_task = -1;
            g.s.verdict.unread(event, g.s.context, OutputSet::only(0), g.s.outcome);
        };
        if (how != Used) unread(cure, {g.gradient.view()}, g.gradient.written());
        g.s.context.in_optimizer = true;
        unread(add, {g.parameter.view(), g.gradient.view()}, g.parameter.written());
        EXPECT_EQ(g.s.outcome.escaped.size(), how == Used ? 1u : 0u) << how;
    }
}

/// A kernel that no framework announces made the update.
TEST(VerdictGuard, ParameterThatGoesBadUnseenGoesBackToItsGradient) {
    Guarded g;
    MadeUp y{kNan};
    g.parameter.values[0] = kInf;
    g.s.op("aten::mul", {g.parameter.view(), g.one.view()}, {y.returned()});
    g.s.loss(y);
    ASSERT_EQ(g.s.outcome.escaped.size(), 1u);
    EXPECT_EQ(g.s.only().birth.node, "SqrtBackward0");
    EXPECT_EQ(g.s.only().severity, Severity::Error);
}

}  // namespace
}  // namespace numsan
