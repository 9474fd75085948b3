// What a value that no parameter had touched first meets says whose it is: data, the loss's, a setting, a first value.
#include <utility>

#include "tests/host/birth/made_births.h"

namespace numsan {
namespace {

using FirstMeetingsTest = MadeBirths;

TEST_F(FirstMeetingsTest, WhatAValueOfABatchFirstMeetsSaysWhoseItIs) {
    const MadeUpOp make("aten::div", {x.view(), x.view()}, {out.returned()});
    MadeUp prediction({1}, kRequiresGrad), gradient{1}, other{1};
    lineage.mark_gradient(gradient.view().storage);
    const auto meets = [&](const char* name, const MadeUpTensor& with, bool touched, bool grad = true) {
        const BirthId id = born(kNaN, make).id;
        MadeUpOp op(name, {out.view(), with.view()}, {other.returned()});
        op.grad_enabled = grad;
        context.touched = touched;
        births.used(id, op.event(), context);
        context.touched = false;
        return std::pair(store.find(id)->met, store.find(id)->phase);
    };
    EXPECT_EQ(meets("aten::mm", weight, true), std::pair(FirstMet::Parameter, Phase::Data));
    EXPECT_EQ(meets("aten::mul", weight, true), std::pair(FirstMet::Parameter, Phase::Data));
    EXPECT_EQ(meets("aten::mul", prediction, true), std::pair(FirstMet::Prediction, Phase::Forward));
    EXPECT_EQ(meets("aten::mul", gradient, true, false), std::pair(FirstMet::Update, Phase::Optimizer));
    EXPECT_EQ(meets("aten::mul", other, false), std::pair(FirstMet::Unknown, Phase::Data)) << "not yet";
}

TEST_F(FirstMeetingsTest, WhatIsCopiedOverAParameterBeforeAnyStepIsItsFirstValue) {
    const auto phase_after_copy = [&](int64_t step, bool learning) {
        const BirthId id = born(kNaN, MadeUpOp("aten::log", {x.view()}, {out.returned()})).id;
        MadeUpOp copy("aten::copy_", {weight.view(), out.view()}, {weight.written()}, OpClass::Overwriting);
        copy.grad_enabled = false;
        context.step = step;
        context.learning = learning;
        births.used(id, copy.event(), context);
        context.step = 0;
        context.learning = false;
        return store.find(id)->phase;
    };
    EXPECT_EQ(phase_after_copy(0, false), Phase::Load);
    EXPECT_EQ(phase_after_copy(0, true), Phase::Optimizer) << "the first update of a loop is in step 0, too";
    EXPECT_EQ(phase_after_copy(1, true), Phase::Optimizer);
}

TEST_F(FirstMeetingsTest, OnlyTheFirstMeetingCounts) {
    MadeUp prediction({1}, kRequiresGrad), other{1};
    const BirthId id = born(kNaN, MadeUpOp("aten::div", {x.view(), x.view()}, {out.returned()})).id;
    context.touched = true;
    births.used(id, MadeUpOp("aten::mm", {out.view(), weight.view()}, {other.returned()}).event(), context);
    births.used(id, MadeUpOp("aten::mul", {out.view(), prediction.view()}, {other.returned()}).event(), context);
    EXPECT_EQ(store.find(id)->met, FirstMet::Parameter);
    EXPECT_EQ(store.find(id)->phase, Phase::Data);
}

}  // namespace
}  // namespace numsan
