// Made-up copies of transposed matrices: which of them a product would have done without.
#include "host/perf/layout_copies.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class Program {
  public:
    Lineage lineage;
    LayoutCopies layouts;
    MadeUp weight{std::vector<float>(6)}, copy{std::vector<float>(6)}, x{std::vector<float>(4)}, y{1};
    int64_t sizes[2] = {2, 3}, turned[2] = {1, 2}, rows[2] = {3, 1}, square[2] = {2, 2}, even[2] = {2, 1};
    int64_t ops = 1;
    int needless = 0, of_use = 0;

    Program() { op("aten::randn", {}, {weight.returned(), x.returned()}); }

    static TensorView matrix(TensorView view, const int64_t* sizes, const int64_t* strides) {
        view.sizes = sizes;
        view.strides = strides;
        view.ndim = 2;
        return view;
    }
    TensorView lying() { return matrix(weight.view(), sizes, turned); }
    TensorView standing(uint32_t flags = 0) { return matrix(copy.view(flags), sizes, rows); }
    TensorView left() { return matrix(x.view(), square, even); }

    void op(const char* name, std::vector<TensorView> in, std::vector<TensorView> out) {
        const MadeUpOp made(name, std::move(in), std::move(out));
        const OpEvent event = made.event();
        layouts.reads(
            event, lineage, [&](const LayoutCopies::Copy&) { ++needless; },
            [&](const LayoutCopies::Copy&) { ++of_use; });
        for (int32_t i = 0; i < event.output_count; ++i)
            lineage.add(event, event.outputs[i], Range{}, OpSeq{ops}, 1, 0);
        ++ops;
        layouts.remember(event, 1000, lineage, [] { return StackId{7}; });
    }
    void turns() { op("aten::clone", {lying()}, {standing(kReturned)}); }
    void multiplies() { op("aten::mm", {left(), standing()}, {y.returned()}); }
};

TEST(LayoutCopies, CopyForAProductIsNeedless) {
    Program program;
    program.turns();
    program.multiplies();
    EXPECT_EQ(program.needless, 1);
    EXPECT_EQ(program.of_use, 0);
}

TEST(LayoutCopies, CopyThatOthersReadIsOfUse) {
    Program before, behind;
    before.turns();
    before.op("aten::sum", {before.standing()}, {before.y.returned()});
    before.multiplies();
    EXPECT_EQ(before.needless, 0);
    behind.turns();
    behind.multiplies();
    behind.multiplies();
    EXPECT_EQ(behind.of_use, 1);
}

TEST(LayoutCopies, ViewOfItIsNotWhatTheProductWouldHaveTaken) {
    Program program;
    program.turns();
    TensorView view = program.standing();
    int64_t other[2] = {3, 2}, strides[2] = {2, 1};
    view.sizes = other;
    view.strides = strides;
    program.op("aten::mm", {program.left(), view}, {program.y.returned()});
    EXPECT_EQ(program.needless, 0);
}

TEST(LayoutCopies, SnapshotOfWhatIsWrittenSinceIsNone) {
    Program written, unknown;
    written.turns();
    written.op("aten::add_", {written.weight.view()}, {written.weight.written()});
    written.multiplies();
    EXPECT_EQ(written.needless, 0);
    unknown.lineage.forget(&unknown.weight);  // numpy may write it
    unknown.turns();
    unknown.multiplies();
    EXPECT_EQ(unknown.needless, 0);
}

TEST(LayoutCopies, OnlyCopiesOfTransposedMatricesCount) {
    Program other_op, same_order;
    other_op.op("aten::tril", {other_op.lying()}, {other_op.standing(kReturned)});
    other_op.multiplies();
    EXPECT_EQ(other_op.needless, 0);
    const TensorView as_it_lies = Program::matrix(same_order.weight.view(), same_order.sizes, same_order.rows);
    same_order.op("aten::clone", {as_it_lies}, {same_order.standing(kReturned)});
    same_order.multiplies();
    EXPECT_EQ(same_order.needless, 0);
}

TEST(LayoutCopies, ProductWithAVectorIsNone) {
    Program program;
    program.turns();
    program.op("aten::mv", {program.standing(), program.y.view()}, {program.x.returned()});
    EXPECT_EQ(program.needless, 0);
}

}  // namespace
}  // namespace numsan
