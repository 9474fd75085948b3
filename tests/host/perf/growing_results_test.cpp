#include "host/perf/growing_results.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

using What = GrowingResults::Seen::What;

/// A bank that a loop joins with new rows.
class Bank : public testing::Test {
  protected:
    /// A step in which the op at `line` makes a bank of `numel` of the kept one.
    GrowingResults::Seen step(size_t numel, StackId line = 7) {
        const OpSeq first{++ops_};
        auto next = std::make_unique<MadeUp>(std::vector<float>(numel));
        const GrowingResults::Seen seen = join(*next, first, line);
        kept_.push_back(std::move(next));  // no address is used again
        ++step_;
        return seen;
    }
    /// Within the step that began at `first`.
    GrowingResults::Seen join(const MadeUp& made, OpSeq first, StackId line) {
        const MadeUpOp joined({"aten::cat", {kept_.back()->view(), rows_.view()}, {made.returned()}});
        OpEvent event = joined.event();
        event.op = &cat_;
        const GrowingResults::Seen seen = results_.joins(event, first, step_, lineage_, [&] { return line; });
        lineage_.add(event, event.outputs[0], Range{}, OpSeq{++ops_}, line, 0);
        results_.joined(event, lineage_);
        return seen;
    }
    GrowingResults::Seen read(const MadeUp& what) {
        return results_.reads(MadeUpOp("aten::mm", {what.view(), rows_.view()}, {rows_.returned()}).event(), lineage_);
    }

    const OpInfo cat_{"aten::cat", "", OpClass::Preserving, false, 0};
    MadeUp rows_{1, 2};
    std::vector<std::unique_ptr<MadeUp>> kept_ = [] {
        std::vector<std::unique_ptr<MadeUp>> first;
        first.push_back(std::make_unique<MadeUp>(std::vector<float>(10)));
        return first;
    }();
    Lineage lineage_;
    GrowingResults results_;
    int64_t ops_ = 0, step_ = 0;
};

TEST_F(Bank, GrowsFromTheFifthStepOn) {
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(step(20 + i).what, What::Nothing) << i << ": the first has no own result";
    EXPECT_EQ(read(*kept_.back()).what, What::Nothing);
    const GrowingResults::Seen seen = step(24);
    EXPECT_EQ(seen.what, What::Grows);
    EXPECT_EQ(seen.stack, 7u);
    EXPECT_EQ(read(*kept_.back()).what, What::Grows);
    EXPECT_EQ(read(*kept_.front()).what, What::Nothing) << "of the past";
    EXPECT_EQ(read(rows_).what, What::Nothing);
}

TEST_F(Bank, OfLimitedSizeIsNone) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(step(20).what, What::Nothing);
}

TEST_F(Bank, ThatIsFullHasComeToItsEnd) {
    for (size_t i = 0; i < 6; ++i) step(20 + i);
    EXPECT_EQ(step(25).what, What::Ended);
    EXPECT_EQ(step(25).what, What::Nothing) << "it was said";
}

TEST_F(Bank, ThatIsJoinedNoMoreHasComeToItsEnd) {
    for (size_t i = 0; i < 6; ++i) step(20 + i);
    std::vector<StackId> ended;
    const auto note = [&](StackId stack) { ended.push_back(stack); };
    results_.end_step(5, note);
    EXPECT_TRUE(ended.empty()) << "it grew in this step";
    results_.end_step(6, note);
    EXPECT_EQ(ended, std::vector<StackId>{7});
    EXPECT_EQ(read(*kept_.back()).what, What::Nothing);
}

TEST_F(Bank, GrowsInARow) {
    for (size_t i = 0; i < 12; ++i) {
        EXPECT_EQ(step(20 + i).what, What::Nothing) << i;
        if (i % 3 == 2) ++step_;  // a step without
    }
}

TEST_F(Bank, OfOneStepIsNone) {
    for (int i = 0; i < 10; ++i) {
        const OpSeq first{++ops_};
        kept_.push_back(std::make_unique<MadeUp>(std::vector<float>(10)));
        for (size_t token = 0; token < 5; ++token) {
            auto longer = std::make_unique<MadeUp>(std::vector<float>(11 + token));
            EXPECT_EQ(join(*longer, first, 7).what, What::Nothing);
            kept_.push_back(std::move(longer));
        }
        ++step_;
    }
}

TEST_F(Bank, AnotherLineIsAnother) {
    for (size_t i = 0; i < 10; ++i)
        EXPECT_EQ(step(20 + i, i % 2 == 0 ? 8 : 7).what, What::Nothing) << "each grows in every other step only";
}

}  // namespace
}  // namespace numsan
