// The short way of ops that hand on what is reported: which take it, what it costs, what it leaves in the ledger.
#include "host/birth/reported_births.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// Counts the passes that are not the quick one.
class CountingScanner final : public Scanner {
  public:
    mutable int passes = 0;

    Range range(const TensorView& tensor) const noexcept override { return scanner_.range(tensor); }
    KindSet kinds(const TensorView& tensor) const noexcept override {
        ++passes;
        return scanner_.kinds(tensor);
    }
    Health health(const TensorView& tensor) const noexcept override {
        ++passes;
        return scanner_.health(tensor);
    }

  private:
    CpuScanner scanner_;
};

class ReportedBirthsTest : public testing::Test {
  protected:
    ReportedBirthsTest() {
        context.stack = 1;
        nan = birth_in(x, kNaN);
    }

    /// An op made the tensor's values, and that is reported.
    BirthId birth_in(const MadeUp& tensor, Kind kind, bool escaped = true) {
        const MadeUpOp op("aten::log", {y.view()}, {tensor.returned()});
        Birth& birth = births.make(kind, op.event(), context, Phase::Forward);
        birth.escaped = escaped;
        Ledger::Entry entry;
        entry.of(kind) = birth.id;
        ledger.set(tensor.view(), entry);
        scanner.passes = 0;
        return birth.id;
    }
    BirthKinds handed_on(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
        const MadeUpOp op("aten::mul", inputs, outputs);
        OutputSet bad;
        std::vector<Range> ranges;
        for (size_t i = 0; i < outputs.size(); ++i) {
            ranges.push_back(scanner.range(outputs[i]));
            if (ranges[i].suspicious) bad.add(static_cast<int32_t>(i));
        }
        // As a session has them: of the first outputs.
        const int32_t count = std::min(op.event().output_count, 16);
        const BirthKinds births_read = reported.handed_on(op.event(), context, bad, ranges.data(), count);
        for (int32_t i = 0; !births_read.finite() && i < op.event().output_count; ++i)
            reported.write(op.event(), i, births_read, context.step);
        return births_read;
    }

    CountingScanner scanner;
    Ledger ledger;
    BirthStore births;
    ReportedBirths reported{scanner, ledger, births};
    OpContext context;
    MadeUp x{kNan, kNan}, y{1, 2}, out{kNan, kNan};
    BirthId nan = 0;
};

TEST_F(ReportedBirthsTest, WhatIsNaNAllOverTakesNoExactPass) {
    context.step = 4;
    EXPECT_EQ(handed_on({x.view(), y.view()}, {out.returned()}).of(kNaN), nan);
    ASSERT_NE(ledger.find(out.view()), nullptr);
    EXPECT_EQ(ledger.find(out.view())->of(kNaN), nan);
    EXPECT_EQ(ledger.find(out.view())->since, 4);
    context.step = 5;
    EXPECT_EQ(handed_on({x.view(), y.view()}, {out.written()}).of(kNaN), nan);
    EXPECT_EQ(ledger.find(out.view())->since, 4) << "it has held that birth since then";
    EXPECT_EQ(scanner.passes, 0);
}

TEST_F(ReportedBirthsTest, KindsAreLookedForWhereSomeValuesAreFinite) {
    out.values = {kNan, 1};
    EXPECT_EQ(handed_on({x.view(), y.view()}, {out.returned()}).of(kNaN), nan);
    EXPECT_EQ(scanner.passes, 1);
    out.values = {kNan, kInf};
    EXPECT_TRUE(handed_on({x.view(), y.view()}, {out.returned()}).finite()) << "an infinity that no operand has";
}

TEST_F(ReportedBirthsTest, FirstBirthOfEachKindCounts) {
    MadeUp later{kNan, kNan}, infinite{kInf, 1};
    birth_in(later, kNaN);
    const BirthId inf = birth_in(infinite, kPosInf);
    out.values = {kNan, kInf};
    const BirthKinds both = handed_on({later.view(), infinite.view(), x.view()}, {out.returned()});
    EXPECT_EQ(both.of(kNaN), nan);
    EXPECT_EQ(both.of(kPosInf), inf);
    EXPECT_EQ(ledger.find(out.view())->of(kPosInf), inf);
    EXPECT_EQ(ledger.find(out.view())->of(kNegInf), 0u);
}

TEST_F(ReportedBirthsTest, NewsTakesTheLongWay) {
    MadeUp unreported{kNan, kNan}, outside{kNan, 1}, infinite{kInf, kInf};
    birth_in(unreported, kNaN, false);
    EXPECT_TRUE(handed_on({unreported.view(), x.view()}, {out.returned()}).finite()) << "not reported yet";
    EXPECT_TRUE(handed_on({x.view(), outside.view()}, {out.returned()}).finite()) << "no op was seen to make it";
    EXPECT_TRUE(handed_on({x.view(), y.view()}, {infinite.returned()}).finite()) << "another kind";
    EXPECT_TRUE(handed_on({x.view()}, {out.returned(), y.returned()}).finite()) << "an output is finite";
    EXPECT_TRUE(handed_on({y.view()}, {out.returned()}).finite()) << "a birth of finite operands";
    EXPECT_EQ(ledger.find(infinite.view()), nullptr) << "and the short way leaves nothing behind";
}

TEST_F(ReportedBirthsTest, CleanOperandOfABadStorageHandsOnNothing) {
    MadeUp slice{1, 1};
    birth_in(slice, kNaN);
    EXPECT_TRUE(handed_on({slice.view()}, {out.returned()}).finite());
    EXPECT_EQ(handed_on({slice.view(), x.view()}, {out.returned()}).of(kNaN), nan);
}

TEST_F(ReportedBirthsTest, WhatArrivedInThisStepMayBeLoadedIntoState) {
    births.find(nan)->mechanism = Mechanism::DATA;
    EXPECT_TRUE(handed_on({x.view()}, {out.returned()}).finite());
    context.step = 1;
    EXPECT_EQ(handed_on({x.view()}, {out.returned()}).of(kNaN), nan);
}

TEST_F(ReportedBirthsTest, WhatIsWrittenInPartKeepsWhatWasThere) {
    MadeUp storage{kNan, kNan, kInf, 1};
    const BirthId inf = birth_in(storage, kPosInf);
    TensorView half = storage.written();
    half.numel = 2;
    half.sizes = &y.size;
    EXPECT_EQ(handed_on({x.view()}, {half}).of(kNaN), nan);
    EXPECT_EQ(ledger.find(storage.view())->of(kNaN), nan);
    EXPECT_EQ(ledger.find(storage.view())->of(kPosInf), inf);
}

TEST_F(ReportedBirthsTest, ListsOfAnyLength) {
    std::deque<MadeUp> tensors;
    std::vector<TensorView> inputs, outputs;
    for (int i = 0; i < 100; ++i) {
        birth_in(tensors.emplace_back(std::vector<float>{kNan, kNan}), kNaN);
        inputs.push_back(tensors.back().view());
        outputs.push_back(tensors.back().written());
    }
    inputs.push_back(x.view());
    EXPECT_EQ(handed_on(inputs, outputs).of(kNaN), nan);
    for (const MadeUp& tensor : tensors) EXPECT_EQ(ledger.find(tensor.view())->of(kNaN), nan);
    tensors[90].values = {1, 1};
    EXPECT_TRUE(handed_on(inputs, outputs).finite()) << "one of them is finite";
}

}  // namespace
}  // namespace numsan
