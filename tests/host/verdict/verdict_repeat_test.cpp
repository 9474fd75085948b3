// The verdict in a run that has gone bad and goes on: ops hand on what is reported, and what is new is found all the
// same.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// The loss is NaN, and in one step the NaN reaches a parameter, of which the next steps are computed.
struct GoneBad {
    Stream s;
    MadeUp batch{-1}, root{kNan}, gradient{kNan}, out{kNan};
    MadeUp parameter = MadeUp({1}, kParameter);
    BirthId first = 0;

    GoneBad() {
        first = s.op("aten::log", {batch.view()}, {root.returned()});
        s.loss(root);
        train();
        EXPECT_EQ(s.outcome.escaped.size(), 1u);
        EXPECT_EQ(reached(), std::vector<const void*>{&parameter});
    }
    /// A step of which the gradient is bad.
    void train() {
        s.context.node = "LogBackward0";
        s.op("aten::mul", {root.view(), batch.view()}, {gradient.returned()});
        s.accumulate(gradient, parameter);
        s.context.node = nullptr;
        s.step();
        ++s.context.step;
    }
    /// Parameters that the finding is said to have reached.
    std::vector<const void*> reached() const {
        std::vector<const void*> found;
        for (const Contamination& c : s.outcome.contaminated) {
            if (c.kind == EscapeInto::Parameter) found.push_back(c.impl);
        }
        return found;
    }
};

TEST(VerdictRepeat, OpsOfARunThatHasGoneBadTakeTheShortWay) {
    GoneBad run;
    run.s.repeats = 0;
    EXPECT_EQ(run.s.op("aten::mul", {run.parameter.view(), run.batch.view()}, {run.root.returned()}), run.first);
    run.train();
    EXPECT_EQ(run.s.repeats, 3) << "forward, backward and update";
    EXPECT_EQ(run.s.outcome.escaped.size(), 1u);
    EXPECT_EQ(run.reached().size(), 1u);
}

/// Two ops overflow after the loss has grown without bound.
struct Diverged {
    Stream s;
    MadeUp large{3e38f}, first{kInf}, second{kInf};

    Diverged() {
        for (const float value : {1.f, 1e3f, 1e6f, 1e9f}) s.loss(MadeUp{value});
        s.op("aten::mul", {large.view(), large.view()}, {first.returned()});
        s.context.stack = 2;
        s.op("aten::mul", {large.view(), large.view()}, {second.returned()});
    }
};

TEST(VerdictRepeat, WhereADivergedRunOverflowsNextIsNoFurtherFinding) {
    Diverged run;
    MadeUp weight({kInf}, kParameter);
    run.s.loss(run.first);
    ASSERT_EQ(run.s.outcome.escaped.size(), 1u);
    const Birth reported = run.s.only().birth;
    EXPECT_EQ(reported.mechanism, Mechanism::HYPER);
    EXPECT_EQ(reported.stack, 1);
    run.s.context.in_optimizer = true;
    run.s.grad_enabled = false;
    run.s.op("aten::add_", {weight.view(), run.second.view()}, {weight.written()});
    EXPECT_EQ(run.s.outcome.escaped.size(), 1u) << "born before the first was reported, it follows from the same";
    ASSERT_EQ(run.s.outcome.contaminated.size(), 1u);
    EXPECT_EQ(run.s.outcome.contaminated[0].impl, &weight);
    EXPECT_EQ(run.s.outcome.contaminated[0].birth, reported.id);
}

TEST(VerdictRepeat, AnOverflowBeforeTheOneThatWasReportedIsAFinding) {
    Diverged run;
    run.s.loss(run.second);
    run.s.loss(run.first);
    EXPECT_EQ(run.s.outcome.escaped.size(), 2u);
}

TEST(VerdictRepeat, FurtherParametersAreListedSinceTheirStep) {
    GoneBad run;
    MadeUp next({kNan}, kParameter);
    run.s.context.step = 7;
    run.s.repeats = 0;
    run.s.op("aten::add_", {next.view(), run.gradient.view()}, {next.written()});
    EXPECT_EQ(run.s.repeats, 1);
    ASSERT_EQ(run.reached(), (std::vector<const void*>{&run.parameter, &next}));
    EXPECT_EQ(run.s.outcome.contaminated.back().since_step, 7);
    EXPECT_EQ(run.s.outcome.contaminated.back().birth, run.first);
}

TEST(VerdictRepeat, BirthOfCleanOperandsIsFound) {
    GoneBad run;
    MadeUp other{-2}, made{kNan};
    run.s.context.stack = 9;
    const BirthId second = run.s.op("aten::log", {other.view()}, {made.returned()});
    EXPECT_NE(second, run.first);
    run.s.loss(made);
    ASSERT_EQ(run.s.outcome.escaped.size(), 2u);
    EXPECT_EQ(run.s.outcome.escaped[1].birth.id, second);
    EXPECT_FALSE(run.s.outcome.escaped[1].again);
}

TEST(VerdictRepeat, ValueFromOutsideBesideABadOperandIsFound) {
    GoneBad run;
    MadeUp data{kInf, 1}, wide{kNan, kNan}, product{kNan, kNan}, total{kInf};
    run.s.op("aten::expand_copy", {run.parameter.view()}, {wide.returned()});
    run.s.op("aten::mul", {wide.view(), data.view()}, {product.returned()});
    run.s.op("aten::sum", {data.view()}, {total.returned()});
    run.s.loss(total);
    ASSERT_EQ(run.s.outcome.escaped.size(), 2u);
    EXPECT_EQ(run.s.outcome.escaped[1].birth.op, "external");
}

TEST(VerdictRepeat, WhatMayBeAForgottenTensorIsNotCalledData) {
    // A tensor that was just made of the program's own values, or allocated, is no old one.
    for (const char* made : {"", "aten::lift_fresh", "aten::empty"}) {
        const bool fresh = *made != '\0';
        GoneBad run;
        std::deque<MadeUp> dead;
        for (size_t n = 0; n <= 2 * Ledger::kManyBad; ++n) {
            if (n == Ledger::kManyBad) run.s.context.step += Ledger::kStepsKept + 1;
            dead.emplace_back(std::vector<float>{kNan});
            run.s.op("aten::mul", {run.parameter.view(), run.batch.view()}, {dead.back().returned()});
        }
        MadeUp old{kNan}, total{kNan};
        ASSERT_GT(run.s.verdict.forgotten().at("bad tensors"), 0);
        if (made == std::string("aten::lift_fresh")) run.s.op(made, {old.view()}, {old.returned()}, OpClass::Constant);
        if (made == std::string("aten::empty")) run.s.op(made, {}, {old.returned()}, OpClass::Allocation);
        run.s.op("aten::sum", {old.view()}, {total.returned()});
        run.s.loss(total);
        EXPECT_EQ(run.s.outcome.escaped.size(), fresh ? 2u : 1u) << made;
    }
}

/// A program computes a value and then brings one in memory of its own: `torch.tensor([values])`.
struct GivenBack {
    explicit GivenBack(float value, float brought = kNan) : computed{value}, own{1, brought}, total{brought} {
        s.op("aten::log", {x.view()}, {computed.returned()});
    }
    void bring() {
        s.op("aten::lift_fresh", {own.view()}, {own.returned()}, OpClass::Constant);
        s.op("aten::sum", {own.view()}, {total.returned()});
    }
    /// The births that are reported as what they are, and as repeating which.
    std::vector<std::pair<Mechanism, BirthId>> reported() const {
        std::vector<std::pair<Mechanism, BirthId>> found;
        for (const EscapedBirth& one : s.outcome.escaped) found.emplace_back(one.birth.mechanism, one.birth.repeats);
        return found;
    }
    Stream s;
    MadeUp x{-1}, computed, own, total;
};

using Reported = std::vector<std::pair<Mechanism, BirthId>>;

TEST(VerdictRepeat, AValueThatTheProgramMayHaveReadAndGivenBackSaysSo) {
    GivenBack run(kNan);
    run.bring();
    run.s.loss(run.computed);
    const BirthId first = run.s.outcome.escaped.at(0).birth.id;
    run.s.loss(run.total);
    EXPECT_EQ(run.reported(), (Reported{{Mechanism::DOM, 0}, {Mechanism::DATA, first}}));
}

TEST(VerdictRepeat, WhatReachesALossBeforeTheValueThatItMayRepeatIsData) {
    GivenBack run(kNan);
    run.bring();
    run.s.loss(run.total);
    EXPECT_EQ(run.reported(), (Reported{{Mechanism::DATA, 0}})) << "the other one may well stay masked";
}

TEST(VerdictRepeat, WhatIsOfAnotherKindOrAnotherStepIsNotGivenBack) {
    for (const bool kind : {true, false}) {
        GivenBack run(kNan, kind ? kInf : kNan);
        run.s.loss(run.computed);
        if (!kind) ++run.s.context.step;
        run.bring();
        run.s.loss(run.total);
        EXPECT_EQ(run.reported(), (Reported{{Mechanism::DOM, 0}, {Mechanism::DATA, 0}})) << kind;
    }
}

TEST(VerdictRepeat, ANaNMayBeMadeOfAnInfinityThatWasGivenBack) {
    GivenBack run(-kInf);
    run.s.loss(run.computed);
    run.bring();
    run.s.loss(run.total);
    EXPECT_NE(run.reported().at(1).second, 0u);
}

TEST(VerdictRepeat, DataIsNoRepeatOfOtherData) {
    Stream s;
    MadeUp one{kNan, 1}, other{kNan, 2}, first{kNan}, second{kNan};
    s.op("aten::sum", {one.view()}, {first.returned()});
    s.loss(first);
    s.op("aten::mean", {other.view()}, {second.returned()});
    s.loss(second);
    ASSERT_EQ(s.outcome.escaped.size(), 2u);
    EXPECT_EQ(s.outcome.escaped[1].birth.repeats, 0u);
}

TEST(VerdictRepeat, WhatAParameterThatWentBadMadeMayBeGivenBackAtAnyTime) {
    GoneBad run;
    MadeUp own{kNan}, total{kNan};
    run.s.context.step += 5;
    run.s.op("aten::lift_fresh", {own.view()}, {own.returned()}, OpClass::Constant);
    run.s.op("aten::sum", {own.view()}, {total.returned()});
    run.s.loss(total);
    ASSERT_EQ(run.s.outcome.escaped.size(), 2u);
    EXPECT_EQ(run.s.outcome.escaped[1].birth.repeats, run.first);
}

TEST(VerdictRepeat, WhatRepeatsAValueMakesItsParametersThatValues) {
    GivenBack run(kNan);
    MadeUp parameter({1}, kParameter), again{kNan}, sum{kNan};
    run.s.loss(run.computed);
    const BirthId first = run.s.outcome.escaped.at(0).birth.id;
    run.bring();
    run.s.loss(run.total);
    run.s.context.node = "SumBackward0";
    MadeUp gradient{kNan};
    run.s.op("aten::mul", {run.total.view(), run.x.view()}, {gradient.returned()});
    run.s.accumulate(gradient, parameter);
    run.s.context.node = nullptr;
    run.s.step();
    ++run.s.context.step;
    ASSERT_FALSE(run.s.outcome.contaminated.empty()) << "the parameter is bad now";
    run.s.op("aten::lift_fresh", {again.view()}, {again.returned()}, OpClass::Constant);
    run.s.op("aten::sum", {again.view()}, {sum.returned()});
    run.s.loss(sum);
    EXPECT_EQ(run.s.outcome.escaped.back().birth.repeats, first) << "a step later";
}

TEST(VerdictRepeat, AFindingAtTheLineOfARepeatIsTheFirstThere) {
    GivenBack run(kNan);
    run.s.loss(run.computed);
    run.bring();
    run.s.loss(run.total);
    run.s.context.step += 3;
    MadeUp later{1, kNan}, sum{kNan};
    run.s.op("aten::lift_fresh", {later.view()}, {later.returned()}, OpClass::Constant);
    run.s.op("aten::sum", {later.view()}, {sum.returned()});
    run.s.loss(sum);
    ASSERT_EQ(run.s.outcome.escaped.size(), 3u);
    EXPECT_EQ(run.s.outcome.escaped[2].birth.repeats, 0u);
    EXPECT_FALSE(run.s.outcome.escaped[2].again);
}

TEST(VerdictRepeat, ParameterThatIsGoodAgainAndGoesBadAnewIsAFindingOfItsOwn) {
    GoneBad run;
    MadeUp saved{1}, zero{0}, quotient{kInf};
    run.parameter.values[0] = 1;
    run.s.op("aten::copy_", {run.parameter.view(), saved.view()}, {run.parameter.written()}, OpClass::Preserving);
    MadeUp loss{1};
    run.s.op("aten::mul", {run.parameter.view(), saved.view()}, {loss.returned()});
    run.s.loss(loss);
    EXPECT_EQ(run.s.outcome.escaped.size(), 1u) << "nothing is bad";
    run.s.context.stack = 11;
    const BirthId second = run.s.op("aten::div", {run.parameter.view(), zero.view()}, {quotient.returned()});
    EXPECT_NE(second, run.first);
    run.parameter.values[0] = kInf;
    run.s.op("aten::add_", {run.parameter.view(), quotient.view()}, {run.parameter.written()});
    ASSERT_EQ(run.s.outcome.escaped.size(), 2u);
    EXPECT_EQ(run.s.outcome.escaped[1].birth.id, second);
    EXPECT_EQ(run.reached(), (std::vector<const void*>{&run.parameter, &run.parameter})) << "once for each finding";
    run.parameter.values[0] = kNan;
    run.s.op("aten::add_", {run.parameter.view(), run.gradient.view()}, {run.parameter.written()});
    EXPECT_EQ(run.s.outcome.escaped.size(), 2u);
}

TEST(VerdictRepeat, BirthThatNothingReportedTakesTheLongWay) {
    Stream s;
    MadeUp x{-1}, y{kNan}, z{kNan};
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("aten::mul", {y.view(), x.view()}, {z.returned()});
    EXPECT_EQ(s.repeats, 0);
    s.loss(z);
    EXPECT_EQ(s.outcome.escaped.size(), 1u);
    s.op("aten::mul", {y.view(), x.view()}, {z.returned()});
    EXPECT_EQ(s.repeats, 1);
}

}  // namespace
}  // namespace numsan
