// Which ranges an op is inside of: ranges of threads, of domains and of the process; how many are known; forks.
#include "host/stacks/open_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = RangeEvent::Kind;

class OpenRangesTest : public testing::Test {
  protected:
    ~OpenRangesTest() override {
        while (mine.pushed != nullptr || mine.deeper > 0) pop(mine.pushed->back().domain);
    }

    void push(const std::string& name, uint64_t domain = 0) { ranges.take(mine, {Kind::Push, domain, name.c_str()}); }
    void pop(uint64_t domain = 0) { ranges.take(mine, {Kind::Pop, domain, ""}); }
    void start(uint64_t id, const std::string& name) { ranges.take(mine, {Kind::Start, id, name.c_str()}); }
    void stop(uint64_t id) { ranges.take(mine, {Kind::Stop, id, ""}); }
    std::vector<std::string> names() const { return ranges.names(ranges.path(mine)); }

    OpenRanges ranges;
    ThreadRanges mine;
};

TEST_F(OpenRangesTest, NamesAreOutermostFirst) {
    EXPECT_THAT(names(), IsEmpty());
    push("train");
    push("decoder/attn");
    EXPECT_THAT(names(), ElementsAre("train", "decoder/attn"));
    const RangePath inside = ranges.path(mine);
    pop();
    EXPECT_THAT(names(), ElementsAre("train"));
    pop();
    EXPECT_THAT(names(), IsEmpty());
    EXPECT_EQ(mine.pushed, nullptr) << "a thread that ends owns nothing";
    pop();  // one too many
    EXPECT_THAT(names(), IsEmpty());
    EXPECT_THAT(ranges.names(inside), ElementsAre("train", "decoder/attn")) << "an op that is judged later";
    push("train");
    push("decoder/attn");
    EXPECT_EQ(ranges.path(mine).pushed, inside.pushed) << "interned";
}

TEST_F(OpenRangesTest, SameNameInAnotherPlaceIsAnotherPath) {
    push("a");
    const RangePath a = ranges.path(mine);
    push("a");
    EXPECT_NE(ranges.path(mine).pushed, a.pushed);
    EXPECT_THAT(names(), ElementsAre("a", "a"));
    pop();
    EXPECT_EQ(ranges.path(mine).pushed, a.pushed);
}

TEST_F(OpenRangesTest, RangeWithoutANameIsNotShown) {
    push("");
    EXPECT_THAT(names(), IsEmpty());
    push("inner");
    push("");
    EXPECT_THAT(names(), ElementsAre("inner"));
    pop();
    pop();
    EXPECT_THAT(names(), IsEmpty());
}

TEST_F(OpenRangesTest, PopEndsTheInnermostOfItsDomain) {
    push("one", 1);
    push("two", 2);
    push("three", 2);
    pop(1);
    EXPECT_THAT(names(), ElementsAre("two", "three"));
    pop(1);
    EXPECT_THAT(names(), ElementsAre("two", "three"));
    pop(2);
    EXPECT_THAT(names(), ElementsAre("two"));
}

TEST_F(OpenRangesTest, IgnoredRangesAreCountedAndNotShown) {
    push("train");
    push(kIgnoredRange);
    push(kIgnoredRange);
    EXPECT_EQ(mine.ignored, 2);
    EXPECT_THAT(names(), ElementsAre("train"));
    pop();
    pop();
    EXPECT_EQ(mine.ignored, 0);
    start(7, kIgnoredRange);
    EXPECT_TRUE(ranges.ignoring());
    stop(8);
    EXPECT_TRUE(ranges.ignoring());
    stop(7);
    stop(7);
    EXPECT_FALSE(ranges.ignoring());
}

TEST_F(OpenRangesTest, StartedRangesAreTheProcesss) {
    push("thread");
    start(1, "epoch 3");
    start(2, "evaluation");
    EXPECT_THAT(names(), ElementsAre("epoch 3", "evaluation", "thread"));
    std::thread([this] {
        ThreadRanges other;
        EXPECT_THAT(ranges.names(ranges.path(other)), ElementsAre("epoch 3", "evaluation"));
        ranges.take(other, {Kind::Stop, 1, ""});
    }).join();
    EXPECT_THAT(names(), ElementsAre("evaluation", "thread"));
    stop(2);
    EXPECT_THAT(names(), ElementsAre("thread"));
}

TEST_F(OpenRangesTest, MoreStartedRangesThanThereIsRoomForEndWell) {
    for (uint64_t id = 1; id <= 100; ++id) start(id, "x" + std::to_string(id));
    EXPECT_EQ(names().size(), OpenRanges::kMostNames);
    EXPECT_EQ(names().back(), "x64");
    for (uint64_t id = 1; id <= 100; ++id) stop(id);
    EXPECT_THAT(names(), IsEmpty());
}

TEST_F(OpenRangesTest, InnermostNamesOfADeepNestAreShown) {
    const int deepest = int(OpenRanges::kMostPushed) + 10;
    for (int i = 0; i < deepest; ++i) push("level " + std::to_string(i));
    EXPECT_EQ(mine.deeper, 10);
    std::vector<std::string> seen = names();
    EXPECT_EQ(seen.size(), OpenRanges::kMostNames);
    // All paths are open by then, and a further one has no room.
    EXPECT_EQ(seen.back(), "level " + std::to_string(OpenRanges::kMostPaths - 1));
    for (int i = 0; i < deepest - 3; ++i) pop();
    EXPECT_THAT(names(), ElementsAre("level 0", "level 1", "level 2"));
}

TEST_F(OpenRangesTest, OldestPathsAreForgottenAndOpenOnesAreNot) {
    push("run");
    push("first");
    const RangePath first = ranges.path(mine);
    pop();
    RangePath last;
    for (size_t i = 0; i < 2 * OpenRanges::kMostPaths; ++i) {
        push("step " + std::to_string(i));
        last = ranges.path(mine);
        pop();
    }
    EXPECT_THAT(ranges.names(first), IsEmpty());
    EXPECT_THAT(ranges.names(last), ElementsAre("run", "step 8191"));
    EXPECT_THAT(names(), ElementsAre("run"));
    push("first");
    EXPECT_NE(ranges.path(mine).pushed, first.pushed) << "an old id names none";
    EXPECT_THAT(names(), ElementsAre("run", "first"));
}

TEST_F(OpenRangesTest, ManyThreadsNameTheSameRanges) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([this, t] {
            ThreadRanges own;
            for (int i = 0; i < 2000; ++i) {
                const std::string inner = "inner " + std::to_string(i % 50) + " of " + std::to_string(t % 2);
                ranges.take(own, {Kind::Push, 0, "outer"});
                ranges.take(own, {Kind::Push, 0, inner.c_str()});
                EXPECT_THAT(ranges.names(ranges.path(own)), ElementsAre("outer", inner));
                ranges.take(own, {Kind::Pop, 0, ""});
                ranges.take(own, {Kind::Pop, 0, ""});
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace numsan
