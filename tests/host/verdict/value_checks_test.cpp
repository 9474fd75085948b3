// The verdict on checks that programs make of their own values.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// A loss that is NaN, of which the program asks something, and reads the answer.
struct Checked {
    Stream s;
    MadeUp zero{0}, loss = MadeUp({kNan}, kRequiresGrad), answer{1}, all{1};

    /// No value of a float type.
    static TensorView answer_of(const MadeUp& made, uint32_t more) {
        TensorView view = made.view(more);
        view.flags &= ~uint32_t(kScannable);
        return view;
    }
    Checked() { s.op("aten::div", {zero.view(), zero.view()}, {loss.returned()}); }
    void ask(const char* op = "aten::isnan") {
        s.op(op, {loss.view()}, {answer_of(answer, kReturned)});
        s.op("aten::any", {answer_of(answer, 0)}, {answer_of(all, kReturned)});
    }
    void read() { s.op("aten::_local_scalar_dense", {answer_of(all, 0)}, {}, OpClass::HostRead); }
    size_t reported(bool failed) {
        s.verdict.finish(failed, s.outcome);
        return s.outcome.escaped.size();
    }
};

TEST(VerdictChecks, ProgramThatFailedOverOneIsTold) {
    Checked c;
    c.ask();
    c.read();
    ASSERT_EQ(c.reported(true), 1u);
    EXPECT_EQ(c.s.only().birth.op, "aten::div");
    EXPECT_EQ(c.s.only().severity, Severity::Warning);
    EXPECT_EQ(c.s.only().into, EscapeInto::Host);
    EXPECT_EQ(c.s.only().birth.evidence.back(),
              "a check of the program read it; after that came no optimizer step, and the program failed");
}

TEST(VerdictChecks, TrainingThatEndedOverALossIsTold) {
    Checked c;
    c.ask();
    c.read();
    ASSERT_EQ(c.reported(false), 1u);
    EXPECT_EQ(c.s.only().birth.evidence.back(), "a check of the program read it; after that came no optimizer step");
}

TEST(VerdictChecks, TrainingThatEndedOverALossAfterVeryManyChecksIsTold) {
    Checked c;
    c.s.grad_enabled = false;
    c.ask();
    for (size_t i = 0; i < PendingStore::kMost; ++i) c.read();
    EXPECT_EQ(c.reported(false), 0u);
    c.s.grad_enabled = true;
    MadeUp loss({kNan}, kRequiresGrad);
    c.s.op("aten::log", {c.zero.view(), c.zero.view()}, {loss.returned()});
    c.s.op("aten::isnan", {loss.view()}, {Checked::answer_of(c.all, kReturned)});
    c.read();
    ASSERT_EQ(c.reported(false), 1u);
    EXPECT_EQ(c.s.only().birth.op, "aten::log");
}

TEST(VerdictChecks, WhoStepsAfterItKnows) {
    for (const bool failed : {false, true}) {
        Checked c;
        c.ask();
        c.read();
        c.s.verdict.optimizer_begin(c.s.outcome);
        EXPECT_EQ(c.reported(failed), 0u);
    }
}

TEST(VerdictChecks, WhatIsNoLossIsToldOnlyWhereTheProgramFailed) {
    for (const bool failed : {false, true}) {
        Checked c;
        c.s.grad_enabled = false;
        c.ask();
        c.read();
        EXPECT_EQ(c.reported(failed), failed ? 1u : 0u);
    }
}

TEST(VerdictChecks, ThatAProgramFailedMayBeKnownLate) {
    Checked c;
    c.s.grad_enabled = false;
    c.ask();
    c.read();
    EXPECT_EQ(c.reported(false), 0u);
    EXPECT_EQ(c.reported(true), 1u);
    EXPECT_EQ(c.reported(true), 1u) << "told once";
}

TEST(VerdictChecks, AnswersThatNobodyReadAreNone) {
    Checked c;
    c.ask();
    EXPECT_EQ(c.reported(true), 0u);
}

TEST(VerdictChecks, OpsThatDoNotAnswerHideWhatTheyRead) {
    Checked c;
    c.ask("aten::argmax");
    c.read();
    EXPECT_EQ(c.reported(true), 0u);
}

TEST(VerdictChecks, InfinityThatTheProgramWroteIsNone) {
    Checked c;
    c.s.infinite_scalar = true;
    MadeUp mask{-kInf};
    c.s.op("aten::full", {}, {mask.returned()}, OpClass::Constant);
    c.s.infinite_scalar = false;
    c.s.op("aten::isinf", {mask.view()}, {Checked::answer_of(c.all, kReturned)});
    c.read();
    EXPECT_EQ(c.reported(true), 0u);
}

/// As isfinite() does: where the magnitudes were, the answer lies.
TEST(VerdictChecks, AnswerThatLiesWhereABadValueWas) {
    Checked c;
    MadeUp again{kNan};
    c.s.op("aten::eq", {c.loss.view(), c.loss.view()}, {Checked::answer_of(c.answer, kReturned)});
    c.s.op("aten::abs", {c.loss.view()}, {again.returned()});
    c.s.op("aten::ne", {again.view()}, {Checked::answer_of(c.all, kReturned)});
    c.s.op("aten::mul", {Checked::answer_of(c.answer, 0), Checked::answer_of(c.all, 0)},
           {Checked::answer_of(again, kReturned)});
    c.s.op("aten::_local_scalar_dense", {Checked::answer_of(again, 0)}, {}, OpClass::HostRead);
    EXPECT_EQ(c.reported(false), 1u) << "it is the loss's";
}

/// The next op of the program after a check has been read.
void run_on(Checked& c, AfterCheck shown) {
    c.s.stacks.after = shown;
    c.s.context.stack = kGeneratedStack;
    MadeUp one{1}, two{2};
    c.s.op("aten::mul", {one.view(), one.view()}, {two.returned()});
}

TEST(VerdictChecks, ExceptionThatTheProgramCaughtIsTold) {
    Checked c;
    c.ask();
    c.read();
    EXPECT_TRUE(c.s.outcome.escaped.empty());
    run_on(c, AfterCheck::Raised);
    EXPECT_EQ(c.s.only().birth.op, "aten::div");
    EXPECT_EQ(c.s.only().severity, Severity::Warning);
    EXPECT_EQ(c.s.only().into, EscapeInto::Host);
    EXPECT_EQ(c.s.only().birth.evidence.back(),
              "a check of the program read it and raised an exception, which the program caught");
    c.s.verdict.optimizer_begin(c.s.outcome);
    EXPECT_EQ(c.reported(true), 1u) << "told once";
}

TEST(VerdictChecks, CheckThatRaisedNothingIsOneThatSkips) {
    Checked c;
    c.ask();
    c.read();
    run_on(c, AfterCheck::WentOn);
    run_on(c, AfterCheck::Raised);  // of a later op nothing is asked
    c.s.verdict.optimizer_begin(c.s.outcome);
    EXPECT_EQ(c.reported(true), 0u);
}

TEST(VerdictChecks, GradientThatOverflowedIsALossScalers) {
    Checked c;
    MadeUp large{3e38f}, gradient{kInf};
    c.s.context.node = "MulBackward0";
    c.s.op("aten::mul", {large.view(), large.view()}, {gradient.returned()});
    c.s.context.node = nullptr;
    c.s.op("aten::isinf", {gradient.view()}, {Checked::answer_of(c.all, kReturned)});
    c.read();
    run_on(c, AfterCheck::Raised);
    EXPECT_TRUE(c.s.outcome.escaped.empty());
}

TEST(VerdictChecks, OpsOfTheCheckItselfDecideNothing) {
    Checked c;
    c.ask();
    c.read();
    for (int i = 0; i < 10; ++i) run_on(c, AfterCheck::Within);
    run_on(c, AfterCheck::Raised);
    EXPECT_EQ(c.s.outcome.escaped.size(), 0u) << "of a pair of stacks the first answer holds";
    EXPECT_EQ(c.reported(true), 1u);
}

TEST(VerdictChecks, SourcesAreReadUnderNoLock) {
    Checked c;
    std::future<void> other;
    bool waited = false;
    c.s.stacks.asked = [&] {
        other = std::async(std::launch::async, [&] { (void)c.s.verdict.counts(); });
        waited = other.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
    };
    c.ask();
    c.read();
    run_on(c, AfterCheck::Raised);
    ASSERT_TRUE(other.valid()) << "it was asked";
    EXPECT_FALSE(waited) << "another thread got the lock meanwhile";
    EXPECT_EQ(c.s.only().severity, Severity::Warning);
}

TEST(VerdictChecks, AfterAStepNothingIsFollowed) {
    Checked c;
    c.ask();
    c.read();
    c.s.verdict.optimizer_begin(c.s.outcome);
    run_on(c, AfterCheck::Raised);
    EXPECT_EQ(c.reported(true), 0u);
}

/// The value is gone, and its memory is used again, before the answer is read.
TEST(VerdictChecks, ValueThatIsGoneIsFoundByTheOpThatMadeIt) {
    Checked c;
    c.ask();
    MadeUp one{1};
    c.loss.values[0] = 1;
    c.s.op("aten::mul", {one.view(), one.view()}, {c.loss.returned()});
    c.read();
    ASSERT_EQ(c.reported(true), 1u);
    EXPECT_EQ(c.s.only().birth.op, "aten::div");
}

}  // namespace
}  // namespace numsan
