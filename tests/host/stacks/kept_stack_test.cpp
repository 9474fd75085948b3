// Unit tests of host/stacks/kept_stack.h: every keep() is ended once, however the value is copied and moved.
#include "host/stacks/kept_stack.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace numsan {
namespace {

class CountingStacks final : public StackSource {
  public:
    mutable std::map<StackId, int> kept;

    StackId capture() noexcept override { return 0; }
    bool in_module(StackId) const noexcept override { return false; }
    std::vector<SourceFrame> resolve(StackId) const override { return {}; }
    LiveNames names(const TensorReader&) override { return {}; }
    void keep(StackId id) const noexcept override { ++kept[id]; }
    void release(StackId id) const noexcept override { --kept[id]; }
};

TEST(KeptStack, it_is_kept_while_a_copy_lives) {
    const CountingStacks stacks;
    {
        KeptStack one(7, &stacks);
        EXPECT_EQ(stacks.kept[7], 1);
        const KeptStack copy = one;
        EXPECT_EQ(stacks.kept[7], 2);
        one = 8;
        EXPECT_EQ(stacks.kept[7], 1);
        EXPECT_EQ(stacks.kept[8], 1);
        KeptStack moved = std::move(one);
        EXPECT_EQ(stacks.kept[8], 1);
        moved = copy;
        EXPECT_EQ(stacks.kept[7], 2);
        EXPECT_EQ(stacks.kept[8], 0);
        EXPECT_EQ(moved, 7u);
    }
    EXPECT_EQ(stacks.kept[7], 0);
    EXPECT_EQ(stacks.kept[8], 0);
}

TEST(KeptStack, a_list_of_them_may_grow_and_shrink) {
    const CountingStacks stacks;
    {
        std::vector<KeptStack> list;
        for (StackId id = 1; id <= 100; ++id) list.emplace_back(id, &stacks);
        list.erase(list.begin(), list.begin() + 50);
        for (StackId id = 1; id <= 100; ++id) EXPECT_EQ(stacks.kept[id], id > 50 ? 1 : 0);
    }
    for (const auto& [id, count] : stacks.kept) EXPECT_EQ(count, 0);
}

TEST(KeptStack, without_a_source_it_is_a_number) {
    KeptStack number = 5;
    number = 6;
    EXPECT_EQ(number, 6u);
}

}  // namespace
}  // namespace numsan
