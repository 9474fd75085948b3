// Unit tests of host/stacks/stack_table.h: dense ids, growth, lock-free readers beside a writer.
#include "host/stacks/stack_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

namespace numsan {
namespace {

uint64_t hash_of(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15u; }

std::vector<StoredFrame> frames_of(uint64_t i) { return {{reinterpret_cast<const void*>(i), nullptr, int32_t(i)}}; }

TEST(StackTable, an_unknown_stack_is_zero) {
    StackTable table;
    EXPECT_EQ(table.find(1), 0u);
    EXPECT_TRUE(table.frames(0).empty());
    EXPECT_TRUE(table.frames(1).empty());
    EXPECT_FALSE(table.in_module(7));
}

TEST(StackTable, ids_are_dense_and_survive_growth) {
    StackTable table;
    for (uint64_t i = 0; i < 20000; ++i) ASSERT_EQ(table.insert(hash_of(i), frames_of(i), i % 2), i + 1);
    EXPECT_EQ(table.size(), 20000u);
    for (uint64_t i = 0; i < 20000; ++i) {
        ASSERT_EQ(table.find(hash_of(i)), i + 1);
        ASSERT_EQ(table.frames(i + 1).size(), 1u);
        ASSERT_EQ(table.frames(i + 1)[0].line, int32_t(i));
        ASSERT_EQ(table.in_module(i + 1), i % 2 == 1);
    }
}

TEST(StackTable, a_second_insertion_returns_the_first_id) {
    StackTable table;
    EXPECT_EQ(table.insert(42, frames_of(1), false), 1u);
    EXPECT_EQ(table.insert(42, frames_of(2), true), 1u);
    EXPECT_EQ(table.frames(1)[0].line, 1);
}

TEST(StackTable, hash_zero_is_a_hash_like_any_other) {
    StackTable table;
    const StackId id = table.insert(0, frames_of(3), false);
    EXPECT_EQ(table.find(0), id);
    EXPECT_EQ(table.size(), 1u);
}

TEST(StackTable, readers_and_writers_agree) {
    StackTable table;
    constexpr uint64_t kStacks = 30000;
    std::vector<std::vector<StackId>> seen(3, std::vector<StackId>(kStacks));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&table, &mine = seen[t]] {
            for (uint64_t i = 0; i < kStacks; ++i) {
                StackId id = table.find(hash_of(i));
                if (!id) id = table.insert(hash_of(i), frames_of(i), false);
                if (table.frames(id).size() == 1 && table.frames(id)[0].line == int32_t(i)) mine[i] = id;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[2]);
    EXPECT_EQ(std::set<StackId>(seen[0].begin(), seen[0].end()).size(), kStacks);
    EXPECT_EQ(seen[0].size(), kStacks);
    EXPECT_NE(*std::min_element(seen[0].begin(), seen[0].end()), 0u);
}

}  // namespace
}  // namespace numsan
