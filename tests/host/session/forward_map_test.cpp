// From an autograd node's number to the op that made it.
#include "host/session/forward_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace numsan {
namespace {

TEST(ForwardMap, FindsWhatWasAdded) {
    ForwardMap map;
    const OpInfo log{"aten::log", "", OpClass::Other, false, 0};
    EXPECT_EQ(map.find(1, 5), nullptr);
    map.add(1, 5, 100, true, {&log, 7, 0});
    const ForwardMap::Record* found = map.find(1, 5);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->forward.op, &log);
    EXPECT_EQ(found->forward.stack, 7u);
    EXPECT_EQ(found->seq, 100);
    EXPECT_TRUE(found->gradients);
    EXPECT_EQ(map.find(2, 5), nullptr);
    EXPECT_EQ(map.find(1, 6), nullptr);
}

TEST(ForwardMap, FirstToShowANumberKeepsIt) {
    ForwardMap map;
    map.add(1, 5, 100, true, {nullptr, 7, 0});
    EXPECT_EQ(map.add(1, 5, 101, false, {nullptr, 8, 0}).seq, 100);
    EXPECT_EQ(map.find(1, 5)->forward.stack, 7u);
}

TEST(ForwardMap, BirthIsFilledInLater) {
    ForwardMap map;
    map.add(1, 5, 100, true, {nullptr, 7, 0}).forward.birth = 3;
    EXPECT_EQ(map.find(1, 5)->forward.birth, 3u);
}

TEST(ForwardMap, ForgetsTheOldest) {
    ForwardMap map;
    for (uint64_t n = 0; n < 40000; ++n) map.add(1, n, static_cast<int64_t>(n), true, {});
    EXPECT_EQ(map.find(1, 0), nullptr);
    EXPECT_EQ(map.find(1, 40000 - (1 << 15) - 1), nullptr);
    ASSERT_NE(map.find(1, 40000 - (1 << 15)), nullptr);
    EXPECT_EQ(map.find(1, 39999)->seq, 39999);
}

TEST(ForwardMap, ThreadsThatShareARingAreToldApart) {
    ForwardMap map;
    map.add(1, 5, 100, true, {});
    EXPECT_EQ(map.find(65, 5), nullptr);
    map.add(65, 5, 200, true, {});
    EXPECT_EQ(map.find(1, 5), nullptr);
    EXPECT_EQ(map.find(65, 5)->seq, 200);
}

TEST(ForwardMap, OtherThreadReadsWhatTheForwardThreadWrote) {
    const auto map = std::make_unique<ForwardMap>();
    std::vector<std::thread> threads;
    for (uint64_t t = 1; t <= 4; ++t) {
        threads.emplace_back([&map, t] {
            for (uint64_t n = 0; n < 2000; ++n) map->add(t, n, static_cast<int64_t>(n), true, {});
            std::thread backward([&map, t] {
                for (uint64_t n = 0; n < 2000; ++n) EXPECT_NE(map->find(t, n), nullptr);
            });
            backward.join();
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace numsan
