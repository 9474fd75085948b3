// Unit tests of host/stacks/stack_table.h: ids, growth, what gives way when there is no room, lock-free readers beside
// writers.
#include "host/stacks/stack_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/forked_child.h"

namespace numsan {
namespace {

uint64_t hash_of(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15u; }

std::vector<StoredFrame> frames_of(uint64_t i) { return {{reinterpret_cast<const void*>(i), nullptr, int32_t(i)}}; }

StackId add(StackTable& table, uint64_t i, bool in_module = false) {
    return table.insert(hash_of(i), frames_of(i), in_module).id;
}

bool shows(const StackTable& table, StackId id, uint64_t i) {
    const std::vector<StoredFrame> frames = table.frames(id);
    return frames.size() == 1 && frames[0].line == int32_t(i);
}

StackTable::Limits few(uint32_t stacks) { return {stacks, stacks * 16}; }

TEST(StackTable, an_unknown_stack_is_zero) {
    StackTable table;
    EXPECT_EQ(table.find(1), 0u);
    EXPECT_TRUE(table.frames(0).empty());
    EXPECT_TRUE(table.frames(1).empty());
    EXPECT_FALSE(table.in_module(7));
}

TEST(StackTable, ids_survive_growth) {
    StackTable table;
    std::vector<StackId> ids;
    for (uint64_t i = 0; i < 20000; ++i) ids.push_back(add(table, i, i % 2));
    EXPECT_EQ(table.size(), 20000u);
    EXPECT_EQ(std::set<StackId>(ids.begin(), ids.end()).size(), 20000u);
    for (uint64_t i = 0; i < 20000; ++i) {
        ASSERT_EQ(table.find(hash_of(i)), ids[i]);
        ASSERT_TRUE(shows(table, ids[i], i));
        ASSERT_EQ(table.in_module(ids[i]), i % 2 == 1);
    }
    EXPECT_EQ(table.forgotten(), 0);
}

TEST(StackTable, a_second_insertion_returns_the_first_id) {
    StackTable table;
    const auto first = table.insert(42, frames_of(1), false);
    const auto second = table.insert(42, frames_of(2), true);
    EXPECT_TRUE(first.added);
    EXPECT_FALSE(second.added);
    EXPECT_EQ(first.id, second.id);
    EXPECT_TRUE(shows(table, first.id, 1));
}

TEST(StackTable, hashes_that_mean_something_to_it_are_like_any_other) {
    StackTable table;
    const StackId zero = table.insert(0, frames_of(3), false).id;
    EXPECT_EQ(table.find(0), zero);
    EXPECT_EQ(table.insert(~uint64_t(0), frames_of(4), false).id, zero);  // known by its hash alone
    EXPECT_EQ(table.size(), 1u);
}

TEST(StackTable, size_stays_within_its_limits) {
    StackTable table({}, few(100));
    for (uint64_t i = 0; i < 10000; ++i) {
        ASSERT_TRUE(shows(table, add(table, i), i));
        ASSERT_LE(table.size(), 100u);
    }
    EXPECT_EQ(table.forgotten() + table.size(), 10000);
}

TEST(StackTable, frames_have_a_limit_of_their_own) {
    StackTable table({}, {1000, 640});
    for (uint64_t i = 0; i < 500; ++i) table.insert(hash_of(i), std::vector<StoredFrame>(63), false);
    EXPECT_LE(table.size(), 10u);
    EXPECT_EQ(table.frames(table.find(hash_of(499))).size(), 63u);
}

TEST(StackTable, what_is_found_stays) {
    StackTable table({}, few(256));
    std::vector<StackId> hot;
    for (uint64_t i = 0; i < 32; ++i) hot.push_back(add(table, i));
    for (uint64_t i = 1000; i < 20000; ++i) {
        add(table, i);
        for (uint64_t h = 0; h < 32; ++h) ASSERT_EQ(table.find(hash_of(h)), hot[h]) << i;
    }
}

TEST(StackTable, an_id_never_names_another_stack) {
    StackTable table({}, few(64));
    std::vector<StackId> ids;
    for (uint64_t i = 0; i < 5000; ++i) ids.push_back(add(table, i));
    int held = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
        ASSERT_TRUE(table.frames(ids[i]).empty() || shows(table, ids[i], i));
        held += table.holds(ids[i]) ? 1 : 0;
    }
    EXPECT_EQ(uint32_t(held), table.size());
    EXPECT_EQ(std::set<StackId>(ids.begin(), ids.end()).size(), 5000u);
    const StackId again = add(table, 0);
    EXPECT_NE(again, ids[0]);
    EXPECT_TRUE(shows(table, again, 0));
    EXPECT_TRUE(table.frames(ids[0]).empty());
}

TEST(StackTable, what_is_kept_stays_until_it_is_released) {
    StackTable table({}, few(64));
    const StackId kept = add(table, 0);
    table.keep(kept);
    table.keep(kept);
    for (uint64_t i = 1; i < 1000; ++i) add(table, i);
    EXPECT_TRUE(shows(table, kept, 0));
    EXPECT_EQ(table.find(hash_of(0)), kept);
    table.release(kept);
    for (uint64_t i = 1000; i < 2000; ++i) add(table, i);
    EXPECT_TRUE(shows(table, kept, 0));
    table.release(kept);
    for (uint64_t i = 2000; i < 3000; ++i) add(table, i);
    EXPECT_TRUE(table.frames(kept).empty());
    table.release(kept);  // of a stack that is gone
}

TEST(StackTable, new_stacks_have_room_though_all_are_kept) {
    StackTable table({}, few(64));
    for (uint64_t i = 0; i < 1000; ++i) {
        const StackId id = add(table, i);
        ASSERT_TRUE(shows(table, id, i));
        table.keep(id);
    }
    EXPECT_LE(table.size(), 64u);
}

TEST(StackTable, a_retired_stack_is_shown_and_not_found) {
    StackTable table({}, few(64));
    const StackId old = add(table, 0);
    table.retire(old);
    EXPECT_EQ(table.find(hash_of(0)), 0u);
    EXPECT_TRUE(shows(table, old, 0));
    const auto fresh = table.insert(hash_of(0), frames_of(7), false);
    EXPECT_TRUE(fresh.added);
    EXPECT_EQ(table.find(hash_of(0)), fresh.id);
    EXPECT_TRUE(shows(table, fresh.id, 7));
    EXPECT_TRUE(shows(table, old, 0));
}

TEST(StackTable, many_retired_stacks_leave_room_in_the_index) {
    StackTable table({}, few(1000));
    for (uint64_t i = 0; i < 50000; ++i) {
        table.retire(add(table, i));
        ASSERT_EQ(table.find(hash_of(i)), 0u);
    }
    EXPECT_LE(table.size(), 1000u);
    const StackId last = add(table, 50000);
    EXPECT_EQ(table.find(hash_of(50000)), last);
}

TEST(StackTable, frames_that_give_way_are_told) {
    std::multiset<int32_t> dropped;
    StackTable table(
        [&](std::span<const StoredFrame> frames) {
            for (const StoredFrame& frame : frames) dropped.insert(frame.line);
        },
        few(64));
    for (uint64_t i = 0; i < 1000; ++i) add(table, i);
    EXPECT_EQ(dropped.size(), 1000 - table.size());
    for (uint64_t i = 0; i < 1000; ++i) {
        const bool there = table.find(hash_of(i)) != 0;
        EXPECT_EQ(dropped.count(int32_t(i)), there ? 0u : 1u);
    }
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
                if (!id) id = add(table, i);
                if (shows(table, id, i)) mine[i] = id;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[2]);
    EXPECT_EQ(std::set<StackId>(seen[0].begin(), seen[0].end()).size(), kStacks);
    EXPECT_NE(*std::min_element(seen[0].begin(), seen[0].end()), 0u);
}

/// The bit in an id and the frames of it both follow from the number: a reader that was handed another stack's id sees
/// it. Frames may have given way by the time they are asked for.
TEST(StackTable, readers_are_never_handed_another_stack_while_others_give_way) {
    StackTable table({}, few(128));
    std::atomic<int> wrong{0};
    std::atomic<int> shown{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (uint64_t n = 0; n < 12000; ++n) {
                const uint64_t i = (n * (t + 3) + t) % (n % 3 == 0 ? 64 : 1000);
                StackId id = table.find(hash_of(i));
                if (id == 0) id = add(table, i, i % 2);
                if (id == 0 || StackTable::in_module(id) != (i % 2 == 1)) ++wrong;
                if (n % 7 == 0) {
                    table.keep(id);
                    table.release(id);
                }
                if (n % 11 == 0 && t == 0) table.retire(id);
                if (n % 16 != 0) continue;
                const std::vector<StoredFrame> frames = table.frames(id);
                if (frames.empty()) continue;
                ++shown;
                if (frames[0].line != int32_t(i)) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_GT(shown.load(), 100);
    EXPECT_GT(table.forgotten(), 100);
}

/// The other thread allocates and frees under the table's lock only: a child of a fork may find an address sanitizer's
/// allocator locked, and waits for ever.
TEST(StackTable, a_forked_child_goes_on_with_it) {
    StackTable table({}, few(64));
    std::atomic<bool> done{false};
    std::thread other([&] {
        for (uint64_t i = 10000; !done; ++i) {
            table.lock();
            std::vector<StoredFrame> frames = frames_of(i);
            table.unlock();
            table.insert(hash_of(i), std::move(frames), false);  // a new one, which takes the frames
        }
    });
    while (table.size() < 64) std::this_thread::yield();  // a thread that begins allocates without that lock
    for (int n = 0; n < 20; ++n) {
        ASSERT_TRUE(works_in_child(table, [&table] {
            bool good = true;
            for (uint64_t i = 5000; i < 6000; ++i) good = good && shows(table, add(table, i), i);
            return good && table.size() <= 64;
        }));
    }
    done = true;
    other.join();
}

}  // namespace
}  // namespace numsan
