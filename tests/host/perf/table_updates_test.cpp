#include "host/perf/table_updates.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// A table of 64 rows of two numbers, and what a step does to it.
class TwoColumns : public testing::Test {
  protected:
    TensorView matrix(const MadeUp& of, uint32_t flags) const {
        TensorView view = of.view(flags);
        view.ndim = 2;
        view.sizes = sizes;
        view.strides = strides;
        return view;
    }
    void written(const OpEvent& event) {
        for (int32_t i = 0; i < event.output_count; ++i)
            lineage.add(event, event.outputs[i], Range{}, OpSeq{++ops}, 1, 0);
    }
    void backward(const MadeUp& indices) {
        const MadeUpOp made("aten::embedding_dense_backward", {coming.view(), indices.view()},
                            {matrix(gradient, kReturned)});
        written(made.event());
        tables.after(made.event(), 300, lineage);
    }
    void update(std::vector<TensorView> inputs, int64_t ns) {
        const MadeUpOp made("aten::add_", inputs, {inputs[0]});
        tables.update(made.event(), ns, lineage);
    }

    const int64_t sizes[2] = {64, 2}, strides[2] = {2, 1};
    MadeUp table{std::vector<float>(128), kParameter}, average{std::vector<float>(128)},
        gradient{std::vector<float>(128)};
    MadeUp other{std::vector<float>(384), kParameter};
    MadeUp coming{1, 2}, few{1, 2, 3, 4, 5, 6, 7, 8}, many{1, 2, 3, 4, 5, 6, 7, 8, 9};
    Lineage lineage;
    int64_t ops = 0;
    TableUpdates tables;
};

TEST_F(TwoColumns, OpsOfTheTableCount) {
    backward(few);
    update({average.view()}, 10);
    update({average.view(), gradient.view()}, 20);
    update({other.view()}, 1000);
    update({table.view(), average.view()}, 40);
    const TableUpdates::Updates sum = tables.done();
    EXPECT_EQ(sum.tables, 1);
    EXPECT_EQ(sum.ns, 300 + 10 + 20 + 40);
    EXPECT_EQ(tables.done().tables, 0) << "once a step";
}

TEST_F(TwoColumns, OfAnOpOverAListThePartOfTheTableCounts) {
    backward(few);
    update({table.view(), other.view(), gradient.view()}, 1000);  // 256 of 640 numbers
    EXPECT_EQ(tables.done().ns, 300 + 400);
}

TEST_F(TwoColumns, OpsOfAParameterAsLargeAreNotTheTables) {
    const MadeUp head{std::vector<float>(128), kParameter};
    backward(few);
    update({table.view(), gradient.view()}, 40);
    update({head.view()}, 60);
    EXPECT_EQ(tables.done().ns, 300 + (40 + 60) / 2);
}

TEST_F(TwoColumns, TableWhoseRowsAreReadIsNone) {
    backward(many);
    update({table.view(), gradient.view()}, 40);
    EXPECT_EQ(tables.done().tables, 0);
}

TEST_F(TwoColumns, GradientThatAnotherOpWroteIsNone) {
    backward(few);
    const MadeUpOp clipped("aten::mul_", {gradient.view()}, {gradient.written()});
    written(clipped.event());
    update({table.view(), gradient.view()}, 40);
    EXPECT_EQ(tables.done().tables, 0);
}

TEST_F(TwoColumns, GradientOfTheStepBeforeIsForgotten) {
    backward(few);
    tables.forget();
    update({table.view(), gradient.view()}, 40);
    EXPECT_EQ(tables.done().tables, 0);
}

}  // namespace
}  // namespace numsan
