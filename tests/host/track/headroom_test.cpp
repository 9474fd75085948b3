// Values close to the largest number of a narrow type: which are of the program's making, and which are told.
#include "host/track/headroom.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TEST(NearOverflowPattern, ByTypeAndShare) {
    EXPECT_EQ(near_overflow_pattern(DType::Float16, 0.5), encoded(32768, DType::Float16)) << "32752 is half of 65504";
    EXPECT_EQ(near_overflow_pattern(DType::Float8E4M3Fn, 0.5), encoded(240, DType::Float8E4M3Fn)) << "above 224";
    EXPECT_EQ(near_overflow_pattern(DType::Float32, 0.5), ~uint64_t(0));
    EXPECT_EQ(near_overflow_pattern(DType::Complex32, 0.5), ~uint64_t(0));
    EXPECT_EQ(near_overflow_pattern(DType::Float16, 0), ~uint64_t(0)) << "headroom=0 is off";
}

TEST(NearOverflowPlaces, OnceAStepAndNotForEver) {
    NearOverflowPlaces places;
    const OpInfo mm{"aten::mm", "", OpClass::Other, false, 0};
    EXPECT_TRUE(places.due(&mm, 5, 1));
    EXPECT_FALSE(places.due(&mm, 5, 1));
    EXPECT_TRUE(places.due(&mm, 6, 1)) << "another line";
    std::vector<int64_t> looks;
    for (int64_t step = 2; step < 1000; ++step) {
        if (places.due(&mm, 5, step)) looks.push_back(step);
    }
    EXPECT_EQ(looks, (std::vector<int64_t>{2, 3, 4, 6, 10, 18, 34, 66, 98, 130, 162, 194, 226, 258, 290}));
    int unstepped = 0;
    for (int i = 0; i < 100; ++i) unstepped += places.due(&mm, 7, 0);
    EXPECT_EQ(unstepped, 16) << "where nothing steps, a pass is not told from the next";
}

TEST(NearOverflowPlaces, OneThatIsNotSeenAnyMoreMakesRoom) {
    NearOverflowPlaces places;
    const OpInfo mm{"aten::mm", "", OpClass::Other, false, 0};
    std::vector<StackId> taken;
    for (StackId stack = 1; stack <= 2000; ++stack) {
        if (places.due(&mm, stack, 1)) taken.push_back(stack);
    }
    ASSERT_LE(taken.size(), 256u);
    const auto others = [&](int64_t step) {
        int looks = 0;
        for (StackId stack = 3001; stack <= 5000; ++stack) looks += places.due(&mm, stack, step);
        return looks;
    };
    EXPECT_LT(others(2), 10) << "those of step 1 are kept";
    EXPECT_GT(others(70), 200);
}

/// Ops of a forward pass in half.
class Close : public testing::Test {
  protected:
    void write(const char* op, std::vector<TensorView> inputs, const MadeUpTensor& output,
               OpClass op_class = OpClass::Other) {
        ops_.push_back({op, "", op_class, false, 0});
        OpEvent event = MadeUpOp(op, inputs, {output.returned()}, op_class).event();
        event.op = &ops_.back();
        event.inputs = inputs.data();
        const TensorView view = output.returned();
        event.outputs = &view;
        lineage.add(event, view, scanner.range(view), OpSeq{++seq}, 1, 0);
    }
    std::optional<std::string> close(const char* op, std::vector<TensorView> inputs, const MadeUpTensor& output,
                                     OpClass op_class = OpClass::Other) {
        return close_to_largest(MadeUpOp(op, std::move(inputs), {output.returned()}, op_class).event(), 0,
                                OpSeq{seq + 1}, 0.5, scanner, lineage);
    }
    CpuScanner scanner;
    Lineage lineage;
    int64_t seq = 0;
    MadeUpHalf a{200, -180}, b{200, 150}, large{40000, -27008};

  private:
    std::deque<OpInfo> ops_;
};

TEST_F(Close, SaysHowFarItIs) {
    EXPECT_EQ(close("aten::mul", {a.view(), b.view()}, large),
              "the largest result of mul is 40000, 61 % of the largest float16, 65504, and what it read was not "
              "bounded");
    for (const char* op : {"aten::mm", "aten::bmm", "aten::sum", "aten::add", "aten::square"})
        EXPECT_TRUE(close(op, {a.view(), b.view()}, large)) << op;
    for (const char* op : {"aten::where", "aten::masked_fill", "aten::relu", "aten::cat", "aten::_foreach_mul"})
        EXPECT_FALSE(close(op, {a.view(), b.view()}, large)) << op;
}

TEST_F(Close, NotWhereTheOperandsWere) {
    MadeUpHalf mask{-65504, 0}, before{40000, -27008};
    EXPECT_FALSE(close("aten::add", {a.view(), mask.view()}, large));
    EXPECT_FALSE(close("aten::mm", {before.view(), b.view()}, large));
}

TEST_F(Close, NotBelowTheShareAndNotOneValueAlone) {
    MadeUpHalf room{30000, 1}, one{40000};
    EXPECT_FALSE(close("aten::mul", {a.view(), b.view()}, room));
    EXPECT_FALSE(close("aten::sum", {a.view()}, one)) << "a scaled loss is one value";
}

TEST_F(Close, NotWhereTheProgramChoseTheFactor) {
    MadeUpHalf factor{200};
    MadeUpHalf number(std::vector<double>{200}, kNumber);
    EXPECT_FALSE(close("aten::mul", {a.view(), factor.view()}, large)) << "a scale of the whole tensor";
    EXPECT_FALSE(close("aten::mul", {a.view(), number.view()}, large));
    MadeUp wide{200, -180}, scaled{40000, -36000};
    EXPECT_TRUE(close("aten::_to_copy", {scaled.view()}, large)) << "nobody is known to have scaled it";
    write("aten::mul", {wide.view()}, scaled);
    EXPECT_FALSE(close("aten::_to_copy", {scaled.view()}, large)) << "scaled to fit the type";
}

TEST_F(Close, NotWhereTheProgramSetABound) {
    MadeUp wide{90000, 40000}, bounded{60000, 40000}, copied{60000, 40000};
    write("aten::clamp", {wide.view()}, bounded, OpClass::Constant);
    EXPECT_FALSE(close("aten::_to_copy", {bounded.view()}, large));
    write("aten::clone", {bounded.view()}, copied, OpClass::Preserving);
    EXPECT_FALSE(close("aten::_to_copy", {copied.view()}, large));
    write("aten::tanh", {b.view()}, a);
    EXPECT_FALSE(close("aten::mm", {a.view(), b.view()}, large));
}

/// A cast to float8_e4m3fn, which ends at 448, of what a clamp cut.
class Saturated : public Close {
  protected:
    void SetUp() override { write("aten::mul", {uncut.view()}, uncut); }
    std::optional<std::string> cast(const MadeUpTensor& from, const MadeUpTensor& to) {
        const auto found =
            saturated(MadeUpOp("aten::_to_copy", {from.view()}, {to.returned()}).event(), 0, OpSeq{seq + 1}, lineage);
        return found ? std::optional(found->evidence) : std::nullopt;
    }
    bool follows_scale(const MadeUpTensor& from, const MadeUpTensor& to) {
        return saturated(MadeUpOp("aten::_to_copy", {from.view()}, {to.returned()}).event(), 0, OpSeq{seq + 1}, lineage)
            ->scaled;
    }
    MadeUp uncut{std::vector<float>(8, 2000)}, cut{std::vector<float>(8, 448)};
    MadeUpHalf kept{std::vector<double>(8, 65504)};
};

TEST_F(Saturated, QuarterOfTheValues) {
    MadeUp wide{90000, 70000, 3, 4, 5, 6, 7, 8}, bounded{65504, 65504, 3, 4, 5, 6, 7, 8};
    MadeUpHalf half{65504, -65504, 3, 4, 5, 6, 7, 8}, less{65504, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_FALSE(cast(bounded, half)) << "nothing says that it was cut";
    write("aten::add", {a.view()}, wide);
    write("aten::clamp", {wide.view()}, bounded, OpClass::Constant);
    EXPECT_EQ(cast(bounded, half),
              "2 of 8 values looked at are 65504, the largest float16: before they were cut to it they went up to "
              "90000");
    EXPECT_FALSE(cast(bounded, less)) << "an outlier or two";
    write("aten::add", {a.view()}, wide);
    wide.values.assign(8, 65504);
    write("aten::add", {a.view()}, wide);
    write("aten::clamp", {wide.view()}, bounded, OpClass::Constant);
    EXPECT_FALSE(cast(bounded, half)) << "scaled to the type's largest: the clamp cut nothing";
}

TEST_F(Saturated, CastThatSaturatesByItself) {
    MadeUp wide{90000, 80000, 90000, 90000, 90000, 90000, 90000, 90000};
    write("aten::add", {a.view()}, wide);
    EXPECT_TRUE(cast(wide, kept));
    MadeUpHalf narrow(std::vector<double>(8, 65504));
    EXPECT_FALSE(cast(narrow, kept)) << "no cast from a wider type";
}

TEST_F(Saturated, BehindAScaleOrNot) {
    MadeUp values{2000, 1, 2, 3, 4, 5, 6, 7}, scale{1}, bounded{448, 1, 2, 3, 4, 5, 6, 7};
    MadeUpHalf result{std::vector<double>(8, 65504)};
    MadeUp wide{90000, 80000, 70000, 90000, 80000, 70000, 1, 2}, held{std::vector<float>(8, 65504)};
    write("aten::mm", {values.view(), values.view()}, wide);
    write("aten::clamp", {wide.view()}, held);
    EXPECT_FALSE(follows_scale(held, result));
    write("aten::fill", {}, scale);
    write("aten::mul", {values.view(), scale.view()}, wide);
    write("aten::clamp", {wide.view()}, held);
    EXPECT_TRUE(follows_scale(held, result));
    write("aten::div", {values.view()}, wide);
    write("aten::clamp", {wide.view()}, held);
    EXPECT_TRUE(follows_scale(held, result)) << "by a number";
    write("aten::mm", {}, values);
    write("aten::sigmoid", {}, bounded);
    write("aten::mul", {values.view(), bounded.view()}, wide);
    write("aten::clamp", {wide.view()}, held);
    EXPECT_FALSE(follows_scale(held, result)) << "a gate";
}

TEST_F(Saturated, NotAMaskThatWasMeantToBeLarge) {
    MadeUp mask{0, -1e9f, 0, -1e9f, -1e9f, 0, 0, -1e9f}, bounded{0, -65504, 0, -65504, -65504, 0, 0, -65504};
    MadeUpHalf half{0, -65504, 0, -65504, -65504, 0, 0, -65504};
    write("aten::mul", {a.view()}, mask);
    write("aten::clamp", {mask.view()}, bounded, OpClass::Constant);
    EXPECT_FALSE(cast(bounded, half)) << "all of one magnitude";
    MadeUp distance{3, -1e9f, 7, -1e9f, -1e9f, 2, 0, -1e9f};
    write("aten::masked_fill", {a.view()}, distance, OpClass::Constant);
    write("aten::clamp", {distance.view()}, bounded, OpClass::Constant);
    EXPECT_FALSE(cast(bounded, half)) << "filled in";
}

/// Of float8_e4m3fn.
class MadeUpEight final : public MadeUpTensor {
  public:
    explicit MadeUpEight(const std::vector<double>& values) : MadeUpTensor(values.size(), 0, DType::Float8E4M3Fn) {
        for (const double value : values) bits_.push_back(static_cast<uint8_t>(encoded(value, dtype)));
    }

  private:
    const void* data() const override { return bits_.data(); }
    std::vector<uint8_t> bits_;
};

TEST_F(Close, NotWhatWasScaledIntoEightBits) {
    MadeUp scaled{440, -448, 3, 100}, factor{2, 2, 4, 4}, x{220, -224, 0.75f, 25};
    const MadeUpEight bytes({448, -448, 3, 96});
    write("aten::mul", {x.view(), factor.view()}, scaled);
    EXPECT_FALSE(close("aten::_to_copy", {scaled.view()}, bytes)) << "by blocks: a factor for each value";
    write("aten::add", {x.view(), factor.view()}, scaled);
    EXPECT_TRUE(close("aten::_to_copy", {scaled.view()}, bytes));
}

}  // namespace
}  // namespace numsan
