// What nobody looked at, as a device's tier left it out: what an op may have cured is claimed of nobody.
#include <gtest/gtest.h>

#include <deque>
#include <ostream>
#include <utility>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// A bad gradient has reached its leaf and was read there; of what follows nothing is.
struct Unread : Backward {
    MadeUp other = MadeUp({1}, kParameter), fine{2};

    explicit Unread(float value) {
        gradient.values[0] = value;
        run();
    }
    void unread(const char* name, OpClass op_class, std::vector<TensorView> inputs, std::vector<TensorView> outputs) {
        for (TensorView& input : inputs) input.flags &= ~uint32_t(kScannable);
        for (TensorView& output : outputs) output.flags &= ~uint32_t(kScannable);
        MadeUpOp op(name, std::move(inputs), std::move(outputs), op_class);
        s.verdict.unread(op.event(), s.context, OutputSet::all(), s.outcome);
    }
    void update() {
        s.context.in_optimizer = true;
        unread("aten::add_", OpClass::Other, {parameter.view(), gradient.view()}, {parameter.written()});
        s.context.in_optimizer = false;
    }
};

struct Case {
    const char* op;
    OpClass op_class;
    float value;
    bool cures;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.op << " of " << c.value; }

class InPlace : public testing::TestWithParam<Case> {};

TEST_P(InPlace, WriteThatMayCureIsNoError) {
    const Case& given = GetParam();
    Unread u(given.value);
    u.unread(given.op, given.op_class, {u.gradient.view()}, {u.gradient.written()});
    u.update();
    EXPECT_EQ(u.s.outcome.escaped.size(), given.cures ? 0u : 1u);
    u.s.verdict.optimizer_begin(u.s.outcome);
    u.s.finish();
    EXPECT_EQ(u.s.only().severity, given.cures ? Severity::Warning : Severity::Error);
    EXPECT_EQ(u.s.only().into, EscapeInto::Gradient);
}

INSTANTIATE_TEST_SUITE_P(Ops, InPlace,
                         testing::Values(Case{"aten::clamp_", OpClass::Constant, kInf, true},
                                         Case{"aten::clamp_", OpClass::Constant, kNan, false},
                                         Case{"aten::_foreach_clamp_min_", OpClass::Other, kInf, true},
                                         Case{"aten::_foreach_clamp_max_", OpClass::Other, kNan, false},
                                         Case{"aten::sign_", OpClass::Other, kInf, true},
                                         Case{"aten::reciprocal_", OpClass::Other, kInf, true},
                                         Case{"aten::masked_fill_", OpClass::Constant, kNan, true},
                                         Case{"aten::index_put_", OpClass::Constant, kNan, true},
                                         Case{"somebody::heal_", OpClass::Other, kNan, true},
                                         Case{"aten::_foreach_mul_", OpClass::Other, kInf, false},
                                         Case{"aten::div_", OpClass::Other, kNan, false}));

TEST(VerdictUnread, DivisionByAnInfinityMayCure) {
    Unread u(kInf);
    u.s.context.in_optimizer = true;
    u.unread("aten::addcdiv_", OpClass::Other, {u.parameter.view(), u.fine.view(), u.gradient.view()},
             {u.parameter.written()});
    EXPECT_TRUE(u.s.outcome.escaped.empty());
}

TEST(VerdictUnread, WhatMayBeCuredIsKnownOnceItIsRead) {
    for (const bool cured : {true, false}) {
        Unread u(kInf);
        MadeUp y{cured ? 1 : kInf};
        u.unread("aten::clamp_", OpClass::Constant, {u.gradient.view()}, {u.gradient.written()});
        EXPECT_TRUE(u.s.verdict.knows(u.gradient.view()));
        EXPECT_FALSE(u.s.verdict.is_sure_of(u.gradient.view()));
        if (cured) u.gradient.values[0] = 1;
        u.s.op("aten::mul", {u.gradient.view(), u.one.view()}, {y.returned()});
        u.s.loss(y);
        ASSERT_EQ(u.s.outcome.escaped.size(), cured ? 0u : 1u);
        if (cured) continue;
        EXPECT_EQ(u.s.only().birth.node, "SqrtBackward0");
    }
}

TEST(VerdictUnread, ParameterThatIsReadBadGoesBackToTheGradientThatWasNot) {
    Unread u(kInf);
    u.unread("aten::clamp_", OpClass::Constant, {u.gradient.view()}, {u.gradient.written()});
    u.parameter.values[0] = kInf;
    u.s.context.in_optimizer = true;
    u.s.op("aten::add_", {u.parameter.view(), u.gradient.view()}, {u.parameter.written()});
    ASSERT_EQ(u.s.outcome.escaped.size(), 1u);
    EXPECT_EQ(u.s.only().into, EscapeInto::Gradient);
    EXPECT_EQ(u.s.only().severity, Severity::Error);
}

TEST(VerdictUnread, NanOfAnInfinityIsItsConsequence) {
    Unread u(kInf);
    u.unread("aten::mul_", OpClass::Other, {u.gradient.view(), u.one.view()}, {u.gradient.written()});
    u.gradient.values[0] = u.parameter.values[0] = kNan;  // it was multiplied by 0
    u.s.context.in_optimizer = true;
    u.s.op("aten::add_", {u.parameter.view(), u.gradient.view()}, {u.parameter.written()});
    ASSERT_EQ(u.s.outcome.escaped.size(), 1u);
    EXPECT_EQ(u.s.only().birth.node, "SqrtBackward0");
}

TEST(VerdictUnread, OpOverListsHandsOnMemberByMember) {
    Unread u(kInf);
    u.s.context.in_optimizer = true;
    u.unread("aten::_foreach_add_", OpClass::Other,
             {u.parameter.view(), u.other.view(), u.gradient.view(), u.fine.view()},
             {u.parameter.written(), u.other.written()});
    EXPECT_TRUE(u.s.verdict.is_sure_of(u.parameter.view()));
    EXPECT_FALSE(u.s.verdict.knows(u.other.view()));
    // One operand for all members.
    u.unread("aten::_foreach_mul_", OpClass::Other, {u.other.view(), u.fine.view(), u.gradient.view()},
             {u.other.written(), u.fine.written()});
    EXPECT_TRUE(u.s.verdict.is_sure_of(u.other.view()));
    EXPECT_TRUE(u.s.verdict.is_sure_of(u.fine.view()));
}

TEST(VerdictUnread, WriteToAPartMayCureTheRest) {
    Unread u(kInf);
    TensorView half = u.gradient.written();
    half.storage_bytes *= 2;
    u.unread("aten::zero_", OpClass::Overwriting, {half}, {half});
    EXPECT_TRUE(u.s.verdict.knows(u.gradient.view()));
    EXPECT_FALSE(u.s.verdict.is_sure_of(u.gradient.view()));
}

TEST(VerdictUnread, OutputsBehindTheLastBitThatWereReadAreLeftAlone) {
    constexpr size_t kMany = 70, kRead = 65;
    Unread u(kInf);
    std::deque<MadeUp> made;
    std::vector<TensorView> outputs;
    for (size_t i = 0; i < kMany; ++i) outputs.push_back(made.emplace_back(std::vector<float>{1}).returned());
    for (size_t i = 0; i < kMany; ++i)
        if (i != kRead) outputs[i].flags &= ~uint32_t(kScannable);
    MadeUpOp op("aten::unbind_copy", {u.gradient.view()}, outputs);
    op.inputs[0].flags &= ~uint32_t(kScannable);
    u.s.verdict.unread(op.event(), u.s.context, OutputSet::only(63), u.s.outcome);
    for (size_t i = 0; i < kMany; ++i) EXPECT_EQ(u.s.verdict.knows(made[i].view()), i >= 63 && i != kRead) << i;
}

}  // namespace
}  // namespace numsan
