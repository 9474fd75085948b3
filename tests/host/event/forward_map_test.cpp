// Which forward op made which autograd node.
#include "host/event/forward_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace numsan {
namespace {

const OpInfo kLog{"aten::log", "", OpClass::Other, false, 0};
const OpInfo kSum{"aten::sum", "", OpClass::Other, false, 1};

ForwardMap::Record made_by(const OpInfo& op, uint64_t thread, uint64_t sequence, int64_t seq = 7) {
    return {thread, NodeSeq{sequence}, 1, {&op, 3, 0, OpSeq{seq}}};
}

TEST(ForwardMap, FindsWhatWasAdded) {
    ForwardMap map;
    ForwardMap::Record found;
    EXPECT_FALSE(map.find(1, NodeSeq{5}, found));
    EXPECT_TRUE(map.add(made_by(kLog, 1, 5)));
    ASSERT_TRUE(map.find(1, NodeSeq{5}, found));
    EXPECT_EQ(found.forward.op, &kLog);
    EXPECT_EQ(found.forward.stack, 3u);
    EXPECT_EQ(found.forward.seq, OpSeq{7});
    EXPECT_FALSE(map.find(1, NodeSeq{6}, found));
    EXPECT_FALSE(map.find(2, NodeSeq{5}, found));
}

TEST(ForwardMap, FirstToShowANumberKeepsIt) {
    ForwardMap map;
    EXPECT_TRUE(map.add(made_by(kLog, 1, 5, 7)));
    EXPECT_FALSE(map.add(made_by(kSum, 1, 5, 8)));
    ForwardMap::Record found;
    ASSERT_TRUE(map.find(1, NodeSeq{5}, found));
    EXPECT_EQ(found.forward.op, &kLog);
}

TEST(ForwardMap, BirthIsFilledInLater) {
    ForwardMap map;
    const ForwardMap::Record record = made_by(kLog, 1, 5);
    map.add(record);
    map.born(record, 9);
    ForwardMap::Record found;
    ASSERT_TRUE(map.find(1, NodeSeq{5}, found));
    EXPECT_EQ(found.forward.birth, 9u);
}

TEST(ForwardMap, ForgetsTheOldest) {
    ForwardMap map;
    map.add(made_by(kLog, 1, 5));
    map.add(made_by(kSum, 1, 5 + (1 << 15)));
    ForwardMap::Record found;
    EXPECT_FALSE(map.find(1, NodeSeq{5}, found));
    EXPECT_TRUE(map.find(1, NodeSeq{5 + (1 << 15)}, found));
}

TEST(ForwardMap, ThreadsThatShareARingNeverMixARecord) {
    ForwardMap map;
    std::atomic<bool> done{false};
    const auto write = [&](const OpInfo& op, uint64_t thread) {
        for (int64_t i = 0; i < 50000; ++i) map.add(made_by(op, thread, 5, i));
        done = true;
    };
    std::thread first(write, std::cref(kLog), 1);
    std::thread second(write, std::cref(kSum), 65);
    ForwardMap::Record found;
    while (!done) {
        if (map.find(1, NodeSeq{5}, found)) {
            EXPECT_EQ(found.forward.op, &kLog);
        }
        if (map.find(65, NodeSeq{5}, found)) {
            EXPECT_EQ(found.forward.op, &kSum);
        }
    }
    first.join();
    second.join();
}

}  // namespace
}  // namespace numsan
