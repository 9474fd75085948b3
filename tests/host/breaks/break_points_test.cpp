// Where a program stops with `break`, and what it raises, over made-up events.
#include "host/breaks/break_points.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "host/event/thread_state.h"
#include "tests/host/session/played.h"

namespace numsan {
namespace {

constexpr StackId kElsewhere = 4;
BreakMode g_mode = BreakMode::Stop;
int g_queued = 0;

const HoldApi kHold = {
    [] { return reinterpret_cast<HeldCall*>(uintptr_t(8)); },
    nullptr,
    [](HeldCall*) {},
    [](const HeldCall*) { return int64_t(100); },
    nullptr,
    nullptr,
};

class Breaks : public testing::Test {
  protected:
    Breaks()
        : run(Played::make()),
          breaks(*new BreakPoints(
              run.session->verdict(), [&r = run](BirthId birth) { return r.session->reporter().finding_of(birth); },
              mode)) {
        g_mode = BreakMode::Stop;
        g_queued = 0;
        BreakPoints::take(this_thread());
        run.stacks.stacks[kElsewhere] = {{"/home/me/other.py", "forward", 8, nullptr, false}};
        run.stacks.now = kModel;
        breaks.use(kHold);
        breaks.use([] { ++g_queued; });
        run.session->use(breaks);
    }
    ~Breaks() override { run.remove(); }
    static BreakMode mode() noexcept { return g_mode; }
    static std::unique_ptr<Break> take() { return BreakPoints::take(this_thread()); }

    Played& run;
    BreakPoints& breaks;
    MadeUp x{-1}, y{kNan}, z{kNan};
};

TEST_F(Breaks, StopsAtTheOpThatMadeTheValueOnly) {
    run.op(kLog, {x.view()}, {y.returned()});
    const std::unique_ptr<Break> due = take();
    ASSERT_NE(due, nullptr);
    EXPECT_EQ(due->birth.op, "aten::log");
    EXPECT_FALSE(due->finding.has_value());
    EXPECT_FALSE(due->raises);
    EXPECT_EQ(due->stack, kModel);
    ASSERT_EQ(due->inputs.size(), 1u);
    EXPECT_EQ(due->inputs[0].impl, x.view().impl);
    EXPECT_FALSE(due->inputs[0].written);
    EXPECT_EQ(due->outputs.at(0).impl, y.view().impl);
    EXPECT_NE(due->held.call(), nullptr);
    run.op(kMul, {y.view()}, {z.returned()});
    EXPECT_EQ(take(), nullptr) << "it hands on what it read";
}

TEST_F(Breaks, StopsOnceAtALineUnlessAsked) {
    run.op(kLog, {x.view()}, {y.returned()});
    EXPECT_TRUE(breaks.stop_at("model.py:3", *take()));
    run.op(kLog, {x.view()}, {z.returned()});
    EXPECT_EQ(take(), nullptr) << "the stack is known";
    run.stacks.now = kElsewhere;
    run.op(kLog, {x.view()}, {z.returned()});
    const auto same_line = take();
    ASSERT_NE(same_line, nullptr);
    EXPECT_FALSE(breaks.stop_at("model.py:3", *same_line)) << "the same line by another way";
    run.stacks.now = kModel;
    breaks.again("model.py:3");
    run.op(kLog, {x.view()}, {z.returned()});
    const auto asked = take();
    ASSERT_NE(asked, nullptr);
    EXPECT_TRUE(breaks.stop_at("model.py:3", *asked));
}

TEST_F(Breaks, WhatIsMeantOrArrivesIsNoPlaceToStop) {
    static const OpInfo fill{"aten::full", "", OpClass::Constant, false, 20};
    MadeUp infinity{kInf}, data{kNan};
    OpEvent event{};
    const TensorView output = infinity.returned();
    event.op = &fill;
    event.outputs = &output;
    event.output_count = 1;
    event.infinite_scalar = true;
    event.forward_sequence = ~uint64_t(0);
    event.graph_task = -1;
    run.session->op_end(event);
    EXPECT_EQ(take(), nullptr) << "an infinity that the program wrote";
    run.op(kMul, {data.view()}, {z.returned()});
    EXPECT_EQ(take(), nullptr) << "the value arrived";
    run.loss(z);
    const auto due = take();
    ASSERT_NE(due, nullptr) << "now it does harm";
    ASSERT_TRUE(due->finding.has_value());
    EXPECT_TRUE(due->inputs.empty());
}

TEST_F(Breaks, AFindingOfABirthThatWasShownStopsNothing) {
    run.op(kLog, {x.view()}, {y.returned()});
    EXPECT_TRUE(breaks.stop_at("model.py:3", *take()));
    run.loss(y);
    EXPECT_EQ(take(), nullptr);
    EXPECT_TRUE(run.session->reporter().has(Severity::Error));
}

TEST_F(Breaks, ABirthThatIsLeftToAScalerStopsAsAFinding) {
    run.op(kLog, {x.view()}, {y.returned()});
    const auto due = take();
    EXPECT_TRUE(breaks.stop_at("model.py:3", *due));
    breaks.leave_to_scaler("model.py:3", *due);
    run.loss(y);
    EXPECT_NE(take(), nullptr);
}

TEST_F(Breaks, WithoutATerminalOnlyAFindingRaises) {
    g_mode = BreakMode::Raise;
    run.op(kLog, {x.view()}, {y.returned()});
    EXPECT_EQ(take(), nullptr);
    run.loss(y);
    const auto due = take();
    ASSERT_NE(due, nullptr);
    EXPECT_TRUE(due->raises);
    EXPECT_EQ(due->finding->op, "aten::log");
    EXPECT_NE(due->held.call(), nullptr) << "what the op was called with";
    run.op(kLog, {x.view()}, {y.returned()});
    run.loss(y);
    EXPECT_EQ(take(), nullptr) << "the same finding again";
}

TEST_F(Breaks, BirthsOfOneFindingThatEscapeAtOnceRaiseOnce) {
    g_mode = BreakMode::Off;
    run.op(kLog, {x.view()}, {y.returned()});
    run.op(kLog, {x.view()}, {z.returned()});
    run.loss(y);
    run.loss(z);
    Outcome outcome;
    for (const BirthId id : {BirthId(1), BirthId(2)}) {
        EscapedBirth escaped;
        escaped.birth = *run.session->verdict().birth(id);
        outcome.escaped.push_back(escaped);
    }
    ASSERT_GT(run.session->reporter().finding_of(1)->count, 1);
    g_mode = BreakMode::Raise;
    breaks.published(this_thread(), outcome, kModel);
    const auto due = take();
    ASSERT_NE(due, nullptr) << "an optimizer's update of two parameters";
    EXPECT_TRUE(due->raises);
    breaks.published(this_thread(), outcome, kModel);
    EXPECT_EQ(take(), nullptr);
}

TEST_F(Breaks, ALineThatHasStoppedDoesNotStopForItsFinding) {
    run.op(kLog, {x.view()}, {y.returned()});
    EXPECT_TRUE(breaks.stop_at("model.py:3", *take()));
    run.op(kLog, {x.view()}, {z.returned()});  // its stack has stopped
    EXPECT_EQ(take(), nullptr);
    run.loss(z);
    const auto due = take();
    ASSERT_NE(due, nullptr);
    EXPECT_FALSE(breaks.stop_at("model.py:3", *due));
}

TEST_F(Breaks, WhereTheTerminalIsNobodysAFindingRaises) {
    run.op(kLog, {x.view()}, {y.returned()});
    const auto due = take();
    ASSERT_NE(due, nullptr);
    breaks.ask_nobody(*due);
    EXPECT_FALSE(due->raises) << "it is not known yet whether the value matters";
    run.stacks.now = kElsewhere;
    run.op(kLog, {x.view()}, {z.returned()});
    EXPECT_EQ(take(), nullptr) << "nor is another asked about";
    run.loss(y);
    const auto raised = take();
    ASSERT_NE(raised, nullptr);
    EXPECT_TRUE(raised->raises);
    EXPECT_NE(raised->held.call(), nullptr) << "what the op was called with";
}

TEST_F(Breaks, AFindingThatNobodyCanBeAskedAboutRaises) {
    MadeUp data{kNan};
    run.op(kMul, {data.view()}, {z.returned()});
    run.loss(z);
    const auto due = take();
    ASSERT_NE(due, nullptr);
    ASSERT_FALSE(due->raises);
    breaks.ask_nobody(*due);
    EXPECT_TRUE(due->raises);
}

TEST_F(Breaks, AThreadWithoutPythonHandsOver) {
    g_mode = BreakMode::Off;
    run.op(kLog, {x.view()}, {y.returned()});
    run.loss(y);
    g_mode = BreakMode::Raise;
    Outcome outcome;
    EscapedBirth escaped;
    escaped.birth = *run.session->verdict().birth(1);
    outcome.escaped.push_back(escaped);
    breaks.published(this_thread(), outcome, 0);
    EXPECT_EQ(take(), nullptr);
    EXPECT_EQ(g_queued, 1);
    const auto queued = breaks.take_queued();
    ASSERT_NE(queued, nullptr);
    EXPECT_TRUE(queued->raises);
    EXPECT_EQ(breaks.take_queued(), nullptr);
}

TEST_F(Breaks, SwitchedOffNothingStopsOrRaises) {
    g_mode = BreakMode::Off;
    run.op(kLog, {x.view()}, {y.returned()});
    run.loss(y);
    EXPECT_EQ(take(), nullptr);
    EXPECT_TRUE(run.session->reporter().has(Severity::Error));
}

TEST(BreakMode, IsChosenAsBreakpointDoes) {
    setenv("PYTHONBREAKPOINT", "0", 1);
    EXPECT_EQ(break_mode(), BreakMode::Off);
    setenv("PYTHONBREAKPOINT", "web_pdb.set_trace", 1);
    EXPECT_EQ(break_mode(), BreakMode::Stop);
    unsetenv("PYTHONBREAKPOINT");
    const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
    EXPECT_EQ(break_mode(), terminal ? BreakMode::Stop : BreakMode::Raise);
}

}  // namespace
}  // namespace numsan
