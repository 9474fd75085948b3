// The set of storages computed from parameters: may forget, never invents.
#include "host/session/touched_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace numsan {
namespace {

const void* address(uintptr_t n) { return reinterpret_cast<const void*>(n * 16 + 0x7f0000000000); }

TEST(TouchedSet, SetsAndClears) {
    const auto set = std::make_unique<TouchedSet>();
    EXPECT_FALSE(set->has(address(1)));
    set->set(address(1), true);
    EXPECT_TRUE(set->has(address(1)));
    EXPECT_FALSE(set->has(address(2)));
    set->set(address(1), false);
    EXPECT_FALSE(set->has(address(1)));
}

TEST(TouchedSet, CollisionForgetsAndNeverInvents) {
    const auto set = std::make_unique<TouchedSet>();
    int kept = 0;
    for (uintptr_t i = 0; i < 100000; ++i) set->set(address(2 * i), true);
    for (uintptr_t i = 0; i < 100000; ++i) {
        kept += set->has(address(2 * i)) ? 1 : 0;
        EXPECT_FALSE(set->has(address(2 * i + 1)));
    }
    EXPECT_GT(kept, 0);
    EXPECT_LE(kept, 8192);
}

TEST(TouchedSet, ClearingAnotherStorageOfTheSameSlotKeepsThisOne) {
    const auto set = std::make_unique<TouchedSet>();
    set->set(address(1), true);
    for (uintptr_t i = 2; i < 100000; ++i) set->set(address(i), false);
    EXPECT_TRUE(set->has(address(1)));
}

TEST(TouchedSet, ManyThreads) {
    const auto set = std::make_unique<TouchedSet>();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&set, t] {
            for (uintptr_t i = 0; i < 20000; ++i) {
                set->set(address(i), (i + static_cast<uintptr_t>(t)) % 2 == 0);
                (void)set->has(address(i));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace numsan
