// How large values were in the steps before a finding.
#include "host/cause/magnitude_history.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class MagnitudeHistory : public testing::Test {
  protected:
    /// One op of a step; the ops are numbered on.
    void op(const OpInfo& info, const TensorView& output, int64_t step, StackId stack) {
        OpEvent event{};
        event.op = &info;
        event.outputs = &output;
        event.output_count = 1;
        lineage.at_step(step, OpSeq{++seq});
        lineage.add(event, output, CpuScanner().range(output), OpSeq{seq}, stack, 0);
    }
    std::string history(const Birth& birth, size_t steps = 32) const {
        std::string text;
        for (const PastMagnitude& past : magnitude_history(birth, lineage, steps))
            text += std::to_string(past.step) + ":" +
                    (past.absmax ? std::to_string(static_cast<int>(*past.absmax)) : "none") + " ";
        return text;
    }
    Birth birth_of(int64_t step) const {
        Birth birth;
        birth.kind = kPosInf;
        birth.op = "aten::exp";
        birth.stack = 4;
        birth.step = step;
        birth.seq = OpSeq{seq};
        return birth;
    }
    const OpInfo exp{"aten::exp", "", OpClass::Other, false, 0}, mul{"aten::mul", "", OpClass::Other, false, 1};
    Lineage lineage;
    int64_t seq = 0;
    MadeUp x{1, 2};
};

TEST_F(MagnitudeHistory, OfTheSameOpAtTheSameLine) {
    for (int step = 0; step < 4; ++step) {
        x.values = {float(10 * step), -1};
        op(exp, x.returned(), step, 4);
        x.values = {7777, 7777};
        op(exp, x.returned(), step, 5);
        op(mul, x.returned(), step, 4);
    }
    x.values = {kInf, 1};
    op(exp, x.returned(), 4, 4);
    Birth birth = birth_of(4);
    EXPECT_EQ(history(birth), "0:1 1:10 2:20 3:30 4:none ");
    EXPECT_EQ(history(birth, 2), "3:30 4:none ");
    EXPECT_EQ(history(birth, 0), "");
    birth.outputs.push_back({"output[0]", DType::Float32, {2}, "cpu", CpuScanner().health(x.view()), true});
    EXPECT_EQ(history(birth, 1), "4:1 ") << "of the finding's own step more is known";
}

TEST_F(MagnitudeHistory, LargestOfEachStepAndNothingLater) {
    x.values = {3, 0};
    op(exp, x.returned(), 0, 4);
    x.values = {9, 0};
    op(exp, x.returned(), 0, 4);
    x.values = {5, 0};
    op(exp, x.returned(), 0, 4);
    const Birth birth = birth_of(0);
    x.values = {100, 0};
    op(exp, x.returned(), 0, 4);
    EXPECT_EQ(history(birth), "0:9 ");
}

TEST_F(MagnitudeHistory, OfATensorThatIsWrittenInPlace) {
    MadeUp weight{1, 1}, other{50, 50};
    for (int step = 0; step < 3; ++step) {
        weight.values = {float(step + 1), 0};
        op(mul, weight.written(), step, 9);
        op(mul, other.written(), step, 9);
    }
    Birth birth = birth_of(2);
    birth.in_place = &weight;
    EXPECT_EQ(history(birth), "0:1 1:2 2:3 ");
}

TEST_F(MagnitudeHistory, OfWhateverWasWrittenToAStorage) {
    MadeUp weight{1, 1}, other{50, 50};
    for (int step = 0; step < 3; ++step) {
        weight.values = {step == 1 ? kInf : float(step + 1), 0};
        op(step == 0 ? exp : mul, weight.written(), step, 9);
        op(mul, other.written(), step, 9);
    }
    const std::vector<PastMagnitude> past = storage_history(weight.view().storage, lineage);
    ASSERT_EQ(past.size(), 3u);
    EXPECT_EQ(past[0].absmax, 1);
    EXPECT_EQ(past[1].absmax, std::nullopt);
    EXPECT_EQ(past[2].absmax, 3);
    EXPECT_EQ(past[2].step, 2);
    EXPECT_TRUE(storage_history(this, lineage).empty());
}

TEST_F(MagnitudeHistory, OfTheForwardOpBehindABackwardBirth) {
    for (int step = 0; step < 2; ++step) {
        x.values = {float(8 - step), 0};
        op(exp, x.returned(), step, 6);
        op(mul, x.returned(), step, 4);
    }
    Birth birth = birth_of(1);
    birth.op = "aten::mul";
    birth.node = "ExpBackward0";
    EXPECT_EQ(history(birth), "") << "all nodes run on the stack of backward()";
    birth.has_forward = true;
    birth.forward_op = "aten::exp";
    birth.forward_stack = 6;
    EXPECT_EQ(history(birth), "0:8 1:7 ");
}

TEST_F(MagnitudeHistory, WritesThatWereNotReadSayNothing) {
    OpEvent event{};
    const TensorView output = x.returned();
    event.op = &exp;
    event.outputs = &output;
    event.output_count = 1;
    lineage.at_step(0, OpSeq{++seq});
    lineage.add(event, output, Range{}, OpSeq{seq}, 4, 0);
    EXPECT_EQ(history(birth_of(0)), "");
    Birth arrived = birth_of(0);
    arrived.op = "external";
    EXPECT_EQ(history(arrived), "");
}

}  // namespace
}  // namespace numsan
