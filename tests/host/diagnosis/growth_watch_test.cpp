// When a training whose values grow is warned of: only where its loss is known, of one place, and does not fall.
#include "host/diagnosis/growth_watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/host/session/played.h"

namespace numsan {
namespace {

const OpInfo kLayer{"aten::addmm", "", OpClass::Other, false, 20};
const OpInfo kSquaredError{"aten::mse_loss", "", OpClass::Other, false, 21};

/// A layer whose outputs are three times as large with each step.
struct Growing {
    Played& r = Played::make("diagnose=1");
    MadeUp weight{{1, -1}, kParameter};
    MadeUp sum{0, 0};

    void step(int number, float loss_value, StackId backward_at = kMakeGrads) {
        const float size = std::pow(3.0f, static_cast<float>(number));
        MadeUp x{1, 2}, made{size, -size}, loss{loss_value}, incoming{0.1f, 0.1f};
        r.stacks.now = kModel;
        r.op(kLayer, {x.view(), weight.view()}, {made.returned()});
        r.stacks.now = kTrain;
        r.op(kSquaredError, {made.view()}, {loss.returned()});
        finish_step(loss, incoming, backward_at);
    }

    void finish_step(const MadeUp& loss, const MadeUp& incoming, StackId backward_at = kMakeGrads) {
        r.loss(loss, backward_at);
        r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &incoming, &weight);
        r.update(sum, incoming);
        r.session->node_end();
        r.stacks.now = kTrain;
        r.session->scope_begin("Optimizer.step#SGD.step");
        r.update(weight, sum);
        r.session->scope_end("Optimizer.step#SGD.step");
    }

    json warnings() {
        r.session->finish(0);
        return r.read()["diagnosis"]["early_warnings"];
    }
};

TEST(GrowthWatch, GrowthUnderALossThatRisesIsTold) {
    Growing training;
    for (int i = 0; i < 40; ++i) training.step(i, 2 + 0.1f * static_cast<float>(i));
    const json told = training.warnings();
    ASSERT_EQ(told.size(), 1u) << told.dump(1);
    EXPECT_EQ(told[0]["op"], "aten::addmm");
    EXPECT_EQ(told[0]["dtype"], "float32");
    // 3^80.8 is the largest number.
    EXPECT_NEAR(told[0]["step"].get<double>() + told[0]["steps"].get<double>(), 81, 1);
}

/// A layer whose outputs grow, cast to a 16-bit type.
json warnings_of_a_cast(DType to, float rate) {
    const OpInfo cast{"aten::_to_copy", "", OpClass::Other, false, 22};
    Growing training;
    for (int i = 0; i < 38; ++i) {
        const float size = std::pow(rate, static_cast<float>(i));
        MadeUp x{1, 2}, made{size, -size}, loss{2};
        MadeUpHalf narrow({size, -size}, 0, to);
        MadeUp incoming{0.1f, 0.1f};
        training.r.stacks.now = kModel;
        training.r.op(kLayer, {x.view(), training.weight.view()}, {made.returned()});
        training.r.op(cast, {made.view()}, {narrow.returned()});
        training.r.stacks.now = kTrain;
        training.r.op(kSquaredError, {narrow.view()}, {loss.returned()});
        training.finish_step(loss, incoming);
    }
    return training.warnings();
}

TEST(GrowthWatch, OfACastIsToldWhereItsTypeEndsEarlier) {
    const json narrow = warnings_of_a_cast(DType::Float16, 1.3f);
    ASSERT_EQ(narrow.size(), 1u) << narrow.dump(1);
    EXPECT_EQ(narrow[0]["op"], "aten::_to_copy");
    EXPECT_EQ(narrow[0]["dtype"], "float16");
    const json as_wide = warnings_of_a_cast(DType::BFloat16, 3);
    ASSERT_EQ(as_wide.size(), 1u) << as_wide.dump(1);
    EXPECT_EQ(as_wide[0]["op"], "aten::addmm");
}

TEST(GrowthWatch, ALossThatFallsIsAReasonToSayNothing) {
    Growing training;
    for (int i = 0; i < 40; ++i) training.step(i, 100 / (1 + static_cast<float>(i)));
    EXPECT_TRUE(training.warnings().empty());
}

TEST(GrowthWatch, NothingIsSaidBeforeTheLossIsKnown) {
    Growing training;
    for (int i = 0; i < 15; ++i) training.step(4 * i, 2);
    EXPECT_TRUE(training.warnings().empty());
}

TEST(GrowthWatch, OfTwoLossesNoneSaysThatTheTrainingFails) {
    Growing training;
    constexpr StackId kOther = 9;
    training.r.stacks.stacks[kOther] = {{"/env/torch/autograd/__init__.py", "_make_grads", 9, nullptr, false},
                                        {"/home/me/train.py", "main", 60, nullptr, false}};
    for (int i = 0; i < 40; ++i) training.step(i, 2, i % 2 == 0 ? kMakeGrads : kOther);
    EXPECT_TRUE(training.warnings().empty());
}

}  // namespace
}  // namespace numsan
