// Memory that nothing wrote, and the op that computes in it.
#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TEST(Verdict, UnwrittenMemoryThatIsUpdatedInPlace) {
    Stream s;
    MadeUp average{kNan, kNan}, decay{0.9f, 0.9f}, y{kNan, kNan};
    s.context.stack = 9;
    s.op("aten::empty", {}, {average.returned()}, OpClass::Allocation);
    s.context.stack = 10;
    s.op("aten::mul_", {average.view(), decay.view()}, {average.written()});
    s.op("aten::add", {average.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::UNINIT);
    EXPECT_EQ(s.only().birth.stack, 9u) << "the allocation is the place to look at";
    EXPECT_TRUE(s.only().birth.features.first_update);
}

TEST(Verdict, ResultThatIsWrittenToUnwrittenMemory) {
    Stream s;
    MadeUp x{-1}, result{kNan}, y{kNan};
    s.op("aten::empty", {}, {result.returned()}, OpClass::Allocation);
    s.op("aten::log", {x.view(), result.view()}, {result.written()});  // out=
    s.op("aten::add", {result.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DOM);
}

TEST(Verdict, BadValueThatIsAddedToUnwrittenMemory) {
    Stream s;
    MadeUp x{-1}, root{kNan}, sum{kNan}, y{kNan};
    s.op("aten::empty", {}, {sum.returned()}, OpClass::Allocation);
    s.op("aten::sqrt", {x.view()}, {root.returned()});
    s.op("aten::add_", {sum.view(), root.view()}, {sum.written()});
    s.op("aten::add", {sum.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_EQ(s.only().birth.mechanism, Mechanism::DOM) << "what is known to be bad explains the result";
}

}  // namespace
}  // namespace numsan
