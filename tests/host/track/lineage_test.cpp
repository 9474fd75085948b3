// The memory of who wrote a storage last, from what: flags, ancestors, what it must not invent.
#include "host/track/lineage.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

const OpInfo kMul{"aten::mul", "", OpClass::Other, false, 0};
const OpInfo kAdd{"aten::add_", "", OpClass::Other, true, 1};

class LineageTest : public testing::Test {
  protected:
    void add(const std::vector<TensorView>& inputs, const TensorView& output, int64_t seq, uint16_t flags = 0,
             const OpInfo& op = kMul) {
        OpEvent event{};
        event.op = &op;
        event.inputs = inputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.outputs = &output;
        event.output_count = 1;
        lineage.add(event, output, CpuScanner().range(output), OpSeq{seq}, 5, flags);
    }
    /// Storages and distances, in the order visited.
    std::vector<std::pair<const void*, int>> visited(const MadeUpTensor& from, int64_t before,
                                                     int deepest = 100) const {
        std::vector<std::pair<const void*, int>> seen;
        lineage.ancestors(&from, OpSeq{before}, [&](const Lineage::Record& record, int distance) {
            seen.emplace_back(record.storage, distance);
            return distance < deepest;
        });
        return seen;
    }
    using Seen = std::vector<std::pair<const void*, int>>;

    Lineage lineage;
    MadeUp a{1}, b{2, -8, 0}, c{3}, d{4};
};

TEST_F(LineageTest, RemembersTheLastWrite) {
    Lineage::Record record;
    EXPECT_FALSE(lineage.find(&a, record));
    EXPECT_EQ(lineage.flags(&a), 0);
    add({a.view(), c.view()}, b.returned(), 9, Lineage::kTouched | Lineage::kInModule);
    ASSERT_TRUE(lineage.find(&b, record));
    EXPECT_EQ(record.op, &kMul);
    EXPECT_EQ(record.seq, OpSeq{9});
    EXPECT_EQ(record.stack, 5u);
    EXPECT_EQ(record.numel, 3);
    EXPECT_EQ(record.dtype, DType::Float32);
    EXPECT_EQ(record.largest, encoded(8, DType::Float32));
    EXPECT_EQ(record.smallest, encoded(2, DType::Float32));
    EXPECT_EQ(lineage.written_at(&b), OpSeq{9});
    EXPECT_EQ(record.input_count, 0) << "nobody was seen to write the operands";
    EXPECT_TRUE(lineage.touched(&b));
    EXPECT_EQ(lineage.flags(&b), Lineage::kTouched | Lineage::kInModule);
    EXPECT_EQ(lineage.flags(&a), 0) << "an operand is not written";
    EXPECT_EQ(lineage.written_at(&a), OpSeq::None);
    add({a.view()}, b.returned(), 10);
    EXPECT_FALSE(lineage.touched(&b)) << "what was written anew has nothing of what was there";
}

TEST_F(LineageTest, WriteInPlaceKeepsWhatTheOperandCameFrom) {
    add({}, a.returned(), -2);
    add({}, c.returned(), -1);
    add({a.view()}, b.returned(), 1, Lineage::kTouched | Lineage::kState | Lineage::kBackward);
    add({b.view(), c.view()}, b.written(), 2, 0, kAdd);
    Lineage::Record record;
    ASSERT_TRUE(lineage.find(&b, record));
    EXPECT_EQ(record.op, &kAdd);
    EXPECT_EQ(record.flags, Lineage::kTouched | Lineage::kState);
    EXPECT_EQ(visited(b, 3), (Seen{{&b, 0}, {&c, 1}, {&b, 1}, {&a, 2}})) << "b as it was before, too";
}

TEST_F(LineageTest, KeepsAsManyOperandsAsItHasRoomFor) {
    MadeUp e{1}, f{1}, g{1};
    for (const MadeUp* made : {&b, &c, &d, &e, &f}) add({}, made->returned(), 1);
    add({a.view(), b.view(), c.view(), d.view(), e.view(), f.view()}, g.returned(), 2);
    Lineage::Record record;
    ASSERT_TRUE(lineage.find(&g, record));
    EXPECT_EQ(record.input_count, Lineage::kMaxInputs);
    EXPECT_EQ(visited(g, 3), (Seen{{&g, 0}, {&b, 1}, {&c, 1}, {&d, 1}, {&e, 1}})) << "a's write was not seen";
}

TEST_F(LineageTest, TwoStoragesOfOnePlaceAreBothRemembered) {
    // Addresses that differ by a multiple of the table's reach fall on one place: 2^18 slots of 16 bytes fold onto it.
    const auto at = [](uintptr_t address) {
        TensorView view{};
        view.storage = reinterpret_cast<const void*>(address);
        view.flags = kReturned;
        return view;
    };
    const auto folded = [](uintptr_t n) { return (n << 18) | ((n % (1 << 14)) << 4); };
    const auto remember = [&](uintptr_t n, int64_t seq) {
        OpEvent event{};
        event.op = &kMul;
        const TensorView output = at(folded(n));
        event.outputs = &output;
        event.output_count = 1;
        lineage.add(event, output, Range{}, OpSeq{seq}, 5, Lineage::kTouched);
    };
    const auto known = [&](uintptr_t n) { return lineage.touched(at(folded(n)).storage); };
    remember(1, 1);
    remember(2, 2);
    EXPECT_TRUE(known(1) && known(2));
    remember(3, 3);
    EXPECT_FALSE(known(1)) << "the oldest made room";
    EXPECT_TRUE(known(2) && known(3));
    remember(2, 4);
    remember(4, 5);
    EXPECT_FALSE(known(3));
    EXPECT_TRUE(known(2) && known(4));
}

TEST_F(LineageTest, AGradientThatTakesAPlaceLeavesNothingOfWhoHeldIt) {
    const auto folded = [](uintptr_t n) { return reinterpret_cast<const void*>((n << 18) | ((n % (1 << 14)) << 4)); };
    for (uintptr_t n = 1; n <= 2; ++n) {
        OpEvent event{};
        event.op = &kMul;
        TensorView output{};
        output.storage = folded(n);
        event.outputs = &output;
        event.output_count = 1;
        lineage.add(event, output, Range{}, OpSeq{static_cast<int64_t>(n)}, 5, Lineage::kTouched);
    }
    lineage.mark_gradient(folded(3));
    Lineage::Record record;
    EXPECT_FALSE(lineage.find(folded(1), record)) << "its place was taken";
    EXPECT_FALSE(lineage.find(folded(3), record)) << "nobody was seen to write it";
    EXPECT_TRUE(lineage.find(folded(2), record));
    lineage.forget(folded(2));
    EXPECT_FALSE(lineage.find(folded(2), record));
}

TEST_F(LineageTest, ListsGoPlaceByPlace) {
    const OpInfo foreach_op{"aten::_foreach_add", "", OpClass::Other, false, 2};
    const MadeUp x{1}, y{1}, z{1};
    const std::vector<TensorView> inputs{a.view(), b.view(), c.view(), x.view(), y.view(), z.view()};
    MadeUp out_a{1}, out_b{1}, out_c{1};
    const std::vector<TensorView> outputs{out_a.returned(), out_b.returned(), out_c.returned()};
    OpEvent event{};
    event.op = &foreach_op;
    event.inputs = inputs.data();
    event.input_count = 6;
    event.outputs = outputs.data();
    event.output_count = 3;
    for (const TensorView& input : inputs) add({}, input, 0);
    for (const TensorView& output : outputs) lineage.add(event, output, CpuScanner().range(output), OpSeq{1}, 5, 0);
    EXPECT_EQ(visited(out_b, 2), (Seen{{&out_b, 0}, {&b, 1}, {&y, 1}}));
}

TEST_F(LineageTest, GradientUntilItsMemoryIsUsedAgain) {
    constexpr int kMarks = Lineage::kState | Lineage::kTouched | Lineage::kGradient;
    add({b.view()}, a.returned(), 1);
    lineage.mark_gradient(&a);
    EXPECT_EQ(lineage.flags(&a), kMarks);
    Lineage::Record record;
    ASSERT_TRUE(lineage.find(&a, record));
    EXPECT_EQ(record.flags, kMarks | Lineage::kUnknownOperand) << "nothing is remembered of b";
    add({a.view(), b.view()}, a.written(), 2);
    EXPECT_EQ(lineage.flags(&a), kMarks) << "a clipped gradient is one";
    add({b.view()}, a.returned(), 3);
    EXPECT_EQ(lineage.flags(&a), 0) << "another tensor's memory now";
    lineage.mark_gradient(&c);
    EXPECT_EQ(lineage.flags(&c), kMarks) << "also where no op was seen to write it";
}

TEST_F(LineageTest, AncestorsNearestFirst) {
    add({a.view()}, b.returned(), 1);
    add({b.view()}, c.returned(), 2);
    add({c.view(), b.view()}, d.returned(), 3);
    EXPECT_EQ(visited(d, 4), (Seen{{&d, 0}, {&c, 1}, {&b, 1}})) << "a was never written, b is visited once";
    EXPECT_EQ(visited(d, 4, 0), (Seen{{&d, 0}})) << "false: do not look behind this one";
    EXPECT_EQ(visited(a, 4), Seen{});
}

TEST_F(LineageTest, MemoryUsedAgainHidesNothing) {
    add({}, a.returned(), 0);
    add({a.view()}, b.returned(), 1);
    add({b.view()}, c.returned(), 2);
    add({}, b.returned(), 3);  // other values, at b's address
    EXPECT_EQ(visited(c, 4), (Seen{{&c, 0}, {&b, 1}, {&a, 2}})) << "b as it was when it was read";
    EXPECT_EQ(visited(b, 4), (Seen{{&b, 0}}));
    EXPECT_EQ(visited(c, 2), Seen{}) << "what was written since then is not what was read";
}

TEST_F(LineageTest, NewMemoryHasNoPast) {
    add({a.view()}, b.returned(), 1, Lineage::kTouched);
    lineage.forget(&a);
    EXPECT_TRUE(lineage.touched(&b)) << "forgets what it was asked to forget only";
    lineage.forget(&b);
    Lineage::Record record;
    EXPECT_FALSE(lineage.find(&b, record));
    EXPECT_EQ(lineage.flags(&b), 0);
}

TEST_F(LineageTest, AWriteOfLongAgoIsForgottenButForItsMarks) {
    add({}, a.returned(), 1, Lineage::kTouched);
    for (int n = 0; n < 1 << 14; ++n) add({}, b.returned(), 2 + n);
    Lineage::Record record;
    EXPECT_FALSE(lineage.find(&a, record)) << "its place in the ring is another's";
    EXPECT_EQ(visited(a, 1 << 20), Seen{});
    EXPECT_TRUE(lineage.touched(&a));
    EXPECT_EQ(lineage.written_at(&a), OpSeq{1});
    EXPECT_TRUE(lineage.find(&b, record));
}

}  // namespace
}  // namespace numsan
