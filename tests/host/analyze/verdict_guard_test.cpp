// The verdict on programs that let go of a bad gradient, or cure it, before an optimizer reads it.
#include <gtest/gtest.h>

#include <string>

#include "tests/host/analyze/made_up.h"

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
    Severity decided() {
        s.step();
        const bool error = !s.outcome.escaped.empty();
        s.finish();
        EXPECT_EQ(s.outcome.escaped.size(), 1u);
        EXPECT_EQ(error, s.only().severity == Severity::Error) << "a warning waits for the end";
        return s.only().severity;
    }
};

TEST(VerdictGuard, GradientThatAnotherReplacedIsAWarning) {
    Guarded g;
    g.next_backward();
    EXPECT_EQ(g.decided(), Severity::Warning);
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
        EXPECT_EQ(g.decided(), Severity::Error) << op;
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
        EXPECT_EQ(g.decided(), zeroed ? Severity::Warning : Severity::Error);
    }
}

TEST(VerdictGuard, GradientOfAnotherLeafReplacesNothing) {
    Guarded g;
    MadeUp other({1}, kParameter);
    g.s.op("aten::mul", {g.one.view()}, {g.next.returned()});
    g.s.accumulate(g.next, other);
    EXPECT_EQ(g.decided(), Severity::Error);
}

TEST(VerdictGuard, LeafWithoutAGradientIsAWarning) {
    Guarded g;
    EXPECT_TRUE(g.s.verdict.doubts_gradients());
    g.s.verdict.drop_gradients({&g.parameter});
    EXPECT_FALSE(g.s.verdict.doubts_gradients());
    EXPECT_EQ(g.decided(), Severity::Warning);
}

}  // namespace
}  // namespace numsan
