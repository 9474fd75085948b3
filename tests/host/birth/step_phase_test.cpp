// Which part of a training step an op belongs to, by what it reads and writes.
#include "host/birth/step_phase.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class PhaseOfAnOp : public testing::Test {
  protected:
    PhaseOfAnOp() { context.stack = 1; }

    Phase of(const MadeUpOp& op) const { return StepPhase(stacks, lineage).of(op.event(), context); }
    Phase of_division(std::vector<TensorView> inputs, std::vector<TensorView> outputs) const {
        MadeUpOp op("aten::div", std::move(inputs), std::move(outputs));
        op.grad_enabled = false;
        return of(op);
    }

    MadeUpStacks stacks;
    Lineage lineage;
    OpContext context;
    MadeUp x{-1}, y{1}, out{kNan};
    MadeUp weight = MadeUp({2}, kParameter);
};

TEST_F(PhaseOfAnOp, ByItsOperandsAndItsPlace) {
    const auto phase = [&](const MadeUpTensor& operand, bool gradients, const char* op = "aten::mul",
                           OpClass op_class = OpClass::Other) {
        MadeUpOp made(op, {operand.view()}, {out.returned()}, op_class);
        made.grad_enabled = gradients;
        return of(made);
    };
    EXPECT_EQ(phase(x, true), Phase::Data) << "no parameter touched it";
    EXPECT_EQ(phase(weight, true), Phase::Forward);
    EXPECT_EQ(phase(weight, false), Phase::Optimizer)
        << "arithmetic on a parameter without gradients: an update by hand";
    EXPECT_EQ(phase(weight, false, "aten::mm"), Phase::Forward) << "a layer, in evaluation";
    EXPECT_EQ(phase(x, true, "c10d::allreduce_", OpClass::Collective), Phase::Comm);
    context.stack = kFunctionStack;
    EXPECT_EQ(phase(weight, false), Phase::Forward) << "inside an autograd.Function";
    context.stack = 1;
    context.touched = true;
    EXPECT_EQ(phase(x, true), Phase::Forward);
    context.touched = false;
    context.on_state = true;
    EXPECT_EQ(phase(x, false), Phase::Optimizer) << "a gradient or an average";
    context.on_state = false;
    lineage.mark_gradient(x.view().storage);
    EXPECT_EQ(phase(x, false), Phase::Optimizer);
    context.in_module = true;
    EXPECT_EQ(phase(weight, false), Phase::Forward);
    context.in_data_loader = true;
    EXPECT_EQ(phase(x, true), Phase::Data);
    context.in_data_loader = false;
    context.in_optimizer = true;
    EXPECT_EQ(phase(x, false), Phase::Optimizer);
    EXPECT_EQ(phase(x, true), Phase::Forward) << "a closure's model";
    context.in_module = false;
    EXPECT_EQ(phase(x, true), Phase::Optimizer) << "an update with gradients on, of data without any";
    EXPECT_EQ(phase(weight, true), Phase::Forward) << "a closure's loss";
    context.in_backward = true;
    EXPECT_EQ(phase(x, true), Phase::Backward) << "a hook between nodes";
}

TEST_F(PhaseOfAnOp, ArithmeticOnGradientsNeedsNoNoGrad) {
    MadeUp gradient{0.0f}, norm{0.0f};
    const MadeUpOp made("aten::mm", {y.view()}, {gradient.returned()});
    lineage.add(made.event(), gradient.returned(), {}, OpSeq{}, 1, Lineage::kBackward);
    lineage.mark_gradient(gradient.view().storage);
    const MadeUpOp taken("aten::linalg_vector_norm", {gradient.view()}, {norm.returned()});
    lineage.add(taken.event(), norm.returned(), {}, OpSeq{}, 1, 0);
    EXPECT_EQ(of({"aten::div_", {gradient.view(), y.view()}, {out.returned()}}), Phase::Optimizer);
    EXPECT_EQ(of({"aten::reciprocal", {norm.view()}, {out.returned()}}), Phase::Optimizer);
    EXPECT_EQ(of({"aten::mul", {norm.view(), weight.view()}, {out.returned()}}), Phase::Forward)
        << "autograd records it";
}

TEST_F(PhaseOfAnOp, ModelThatIsCastBeforeItLearnsIsBeingLoaded) {
    const auto cast = [&] {
        MadeUpOp op("aten::_to_copy", {weight.view()}, {out.returned()});
        op.grad_enabled = false;
        return of(op);
    };
    EXPECT_EQ(cast(), Phase::Load);
    context.step = 1;
    EXPECT_EQ(cast(), Phase::Optimizer);
}

TEST_F(PhaseOfAnOp, NewMemoryWhereAGradientWasIsNoGradient) {
    lineage.mark_gradient(out.view().storage);
    EXPECT_EQ(of_division({x.view(), y.view()}, {out.returned()}), Phase::Data);
    EXPECT_EQ(of_division({x.view(), y.view()}, {out.written()}), Phase::Optimizer);
}

}  // namespace
}  // namespace numsan
