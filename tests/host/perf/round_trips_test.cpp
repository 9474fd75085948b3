// Made-up copies to another order of dimensions and back: which of them a program would have done without.
#include "host/perf/round_trips.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// A tensor of 2 x 3 whose copy has its columns first, and what is computed from that.
class Transposing {
  public:
    Lineage lineage;
    RoundTrips trips;
    MadeUp x{std::vector<float>(6)}, turned{std::vector<float>(6)}, between{std::vector<float>(6)},
        back{std::vector<float>(6)}, weight{std::vector<float>(4)}, result{std::vector<float>(6)}, one{1};
    OpSeq first{1};  ///< of the step
    int64_t ops = 1, needless_ns = 0;
    int needless = 0, of_use = 0;

    Transposing() {
        op("aten::randn", {}, {x.returned(), weight.returned()});
        first = OpSeq{ops};
    }

    static TensorView matrix(TensorView view, std::array<int64_t, 2> sizes, std::array<int64_t, 2> strides) {
        static std::deque<std::array<int64_t, 2>> kept;  // a view holds no sizes of its own
        view.sizes = kept.emplace_back(sizes).data();
        view.strides = kept.emplace_back(strides).data();
        view.ndim = 2;
        return view;
    }
    static TensorView wide(const TensorView& view) { return matrix(view, {2, 3}, {3, 1}); }
    static TensorView tall(const TensorView& view) { return matrix(view, {3, 2}, {2, 1}); }
    static TensorView wide_as_tall(const TensorView& view) { return matrix(view, {3, 2}, {1, 3}); }
    static TensorView tall_as_wide(const TensorView& view) { return matrix(view, {2, 3}, {1, 2}); }

    void op(const char* name, std::vector<TensorView> in, std::vector<TensorView> out) {
        const MadeUpOp made(name, std::move(in), std::move(out));
        const OpEvent event = made.event();
        trips.reads(
            event, first, lineage,
            [&](const RoundTrips::Trip& trip) {
                ++needless;
                needless_ns = trip.ns;
                EXPECT_EQ(trip.stack, StackId{7});
            },
            [&](const RoundTrips::Trip&) { ++of_use; });
        for (int32_t i = 0; i < event.output_count; ++i) {
            if (!is_view(event, event.outputs[i])) lineage.add(event, event.outputs[i], Range{}, OpSeq{ops}, 1, 0);
        }
        ++ops;
        trips.remember(event, 1000, lineage, [] { return StackId{7}; });
    }
    void there() { op("aten::clone", {wide_as_tall(x.view())}, {tall(turned.returned())}); }
    void rectifies() { op("aten::relu", {tall(turned.view())}, {tall(between.returned())}); }
    void goes_back() { op("aten::clone", {tall_as_wide(between.view())}, {wide(back.returned())}); }
    void reads_it() { op("aten::mul", {wide(back.view()), wide(x.view())}, {wide(result.returned())}); }
};

TEST(RoundTrips, AreNeedlessAroundWhatWorksOnEachElement) {
    Transposing program;
    program.there();
    program.rectifies();
    program.goes_back();
    EXPECT_EQ(program.needless, 0) << "nothing has read it";
    program.reads_it();
    EXPECT_EQ(program.needless, 1);
    EXPECT_EQ(program.needless_ns, 2000);
    program.reads_it();
    EXPECT_EQ(program.needless, 1) << "a copy is counted once";
    EXPECT_EQ(program.of_use, 0);
}

TEST(RoundTrips, AreNeedlessAroundRowsTimesWeights) {
    Transposing program;
    program.there();
    const TensorView weights = Transposing::matrix(program.weight.view(), {2, 2}, {2, 1});
    program.op("aten::mm", {Transposing::tall(program.turned.view()), weights},
               {Transposing::tall(program.between.returned())});
    program.goes_back();
    program.reads_it();
    EXPECT_EQ(program.needless, 1);
}

TEST(RoundTrips, AreOfUseWhereTheOrderIs) {
    Transposing product, convolution, factor;
    product.there();
    product.op("aten::mm", {Transposing::tall_as_wide(product.turned.view()), Transposing::tall(product.turned.view())},
               {Transposing::matrix(product.weight.returned(), {2, 2}, {2, 1})});
    EXPECT_GE(product.of_use, 1) << "it mixes rows";
    convolution.there();
    convolution.op("aten::convolution", {Transposing::tall(convolution.turned.view())},
                   {Transposing::tall(convolution.between.returned())});
    EXPECT_EQ(convolution.of_use, 1);
    convolution.goes_back();
    convolution.reads_it();
    EXPECT_EQ(convolution.needless, 0);
    factor.there();
    factor.op("aten::sigmoid", {factor.one.view()}, {Transposing::matrix(factor.weight.returned(), {2, 2}, {2, 1})});
    factor.op("aten::mm",
              {Transposing::tall(factor.turned.view()), Transposing::matrix(factor.weight.view(), {2, 2}, {2, 1})},
              {Transposing::tall(factor.between.returned())});
    EXPECT_EQ(factor.of_use, 1) << "by what this step has made";
}

TEST(RoundTrips, NormOfGroupsOrAPlaceOfAllNeedsTheOrder) {
    Transposing groups, place, sum;
    groups.there();
    groups.op("aten::native_group_norm", {Transposing::tall(groups.turned.view())},
              {Transposing::tall(groups.between.returned())});
    EXPECT_EQ(groups.of_use, 1);
    place.there();
    place.op("aten::argmax", {Transposing::tall(place.turned.view())}, {place.one.returned()});
    EXPECT_EQ(place.of_use, 1);
    sum.there();
    sum.op("aten::sum", {Transposing::tall(sum.turned.view())}, {sum.one.returned()});
    EXPECT_EQ(sum.of_use, 0);
}

TEST(RoundTrips, RowsOfAViewAreOthers) {
    Transposing program;
    program.there();
    program.rectifies();
    const TensorView row = Transposing::matrix(program.between.view(), {1, 6}, {6, 1});
    program.op("aten::mm", {row, Transposing::matrix(program.weight.view(), {6, 6}, {6, 1})},
               {Transposing::matrix(program.turned.returned(), {1, 6}, {6, 1})});
    EXPECT_EQ(program.of_use, 1) << "with weights for all elements";
}

TEST(RoundTrips, CopyThatAViewNeedsIsOfUse) {
    Transposing program, turned_only;
    program.there();
    program.rectifies();
    program.goes_back();
    program.op("aten::view", {Transposing::wide(program.back.view())}, {program.back.view()});
    program.reads_it();
    EXPECT_EQ(program.needless, 0);
    turned_only.there();
    turned_only.rectifies();
    turned_only.goes_back();
    turned_only.op("aten::t", {Transposing::wide(turned_only.back.view())},
                   {Transposing::wide_as_tall(turned_only.back.view())});
    turned_only.reads_it();
    EXPECT_EQ(turned_only.needless, 1) << "which another order has as well";
}

TEST(RoundTrips, OtherWaysAreNone) {
    Transposing same_order, written, one_way;
    same_order.op("aten::clone", {Transposing::wide(same_order.x.view())},
                  {Transposing::wide(same_order.turned.returned())});
    same_order.op("aten::relu", {Transposing::wide(same_order.turned.view())},
                  {Transposing::wide(same_order.between.returned())});
    same_order.op("aten::clone", {Transposing::wide(same_order.between.view())},
                  {Transposing::wide(same_order.back.returned())});
    same_order.reads_it();
    EXPECT_EQ(same_order.needless, 0);
    written.there();
    written.rectifies();
    written.op("aten::add_", {Transposing::tall(written.between.view())},
               {Transposing::tall(written.between.written())});
    written.goes_back();
    written.reads_it();
    EXPECT_EQ(written.needless, 1) << "in place is as good";
    one_way.there();
    one_way.rectifies();
    one_way.op("aten::clone", {Transposing::tall(one_way.between.view())},
               {Transposing::tall(one_way.back.returned())});
    one_way.op("aten::relu", {Transposing::tall(one_way.back.view())}, {Transposing::tall(one_way.result.returned())});
    EXPECT_EQ(one_way.needless, 0);
}

}  // namespace
}  // namespace numsan
