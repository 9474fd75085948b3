// Which part of a training step an op belongs to, by what it reads and writes.
#include "host/birth/step_phase.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class PhaseOfAnOp : public testing::Test {
  protected:
    /// Outside of modules, with gradients off.
    Phase of(std::vector<TensorView> inputs, std::vector<TensorView> outputs) {
        MadeUpOp op("aten::div", std::move(inputs), std::move(outputs));
        op.grad_enabled = false;
        return StepPhase(stacks, lineage).of(op.event(), OpContext{});
    }

    MadeUpStacks stacks;
    Lineage lineage;
    MadeUp first{1, 2}, second{3, 4}, result{0, 0};
};

TEST_F(PhaseOfAnOp, ValuesThatNoParameterTouchedAreData) {
    EXPECT_EQ(of({first.view(), second.view()}, {result.returned()}), Phase::Data);
}

TEST_F(PhaseOfAnOp, AGradientThatIsReadOrWrittenIsTheOptimizers) {
    lineage.mark_gradient(first.view().storage);
    EXPECT_EQ(of({first.view(), second.view()}, {result.returned()}), Phase::Optimizer);
    EXPECT_EQ(of({second.view()}, {first.written()}), Phase::Optimizer);
}

TEST_F(PhaseOfAnOp, NewMemoryWhereAGradientWasIsNoGradient) {
    lineage.mark_gradient(result.view().storage);
    EXPECT_EQ(of({first.view(), second.view()}, {result.returned()}), Phase::Data);
}

}  // namespace
}  // namespace numsan
