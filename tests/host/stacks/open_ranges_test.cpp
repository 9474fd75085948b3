// Which ranges an op is inside of: ranges of threads, of domains and of the process; how many are known; forks.
#include "host/stacks/open_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/forked_child.h"

namespace numsan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using RangeKind = RangeEvent::Kind;

class OpenRangesTest : public testing::Test {
  protected:
    ~OpenRangesTest() override {
        while (mine.depth > 0) pop(mine.pushed != nullptr ? mine.pushed->back().domain : 0);
        EXPECT_EQ(mine.pushed, nullptr);
    }

    void push(const std::string& name, uint64_t domain = 0) {
        ranges.take(mine, {RangeKind::Push, false, domain, name.c_str()});
    }
    void push_ignored() { ranges.take(mine, {RangeKind::Push, true, 0, "numsan:ignore"}); }
    void pop(uint64_t domain = 0) { ranges.take(mine, {RangeKind::Pop, false, domain, ""}); }
    void start(uint64_t id, const std::string& name, bool ignored = false) {
        ranges.take(mine, {RangeKind::Start, ignored, id, name.c_str()});
    }
    void stop(uint64_t id) { ranges.take(mine, {RangeKind::Stop, false, id, ""}); }
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

TEST_F(OpenRangesTest, IgnoredRangesAreNotShown) {
    push("train");
    push_ignored();
    push_ignored();
    EXPECT_TRUE(ranges.ignores(mine));
    EXPECT_THAT(names(), ElementsAre("train"));
    pop();
    EXPECT_TRUE(ranges.ignores(mine));
    pop();
    EXPECT_FALSE(ranges.ignores(mine));
    start(7, "numsan:ignore", true);
    EXPECT_TRUE(ranges.ignores(mine));
    EXPECT_TRUE(ranges.ignores(ThreadRanges{}));
    stop(8);
    EXPECT_TRUE(ranges.ignores(mine));
    stop(7);
    stop(7);
    EXPECT_FALSE(ranges.ignores(mine));
}

TEST_F(OpenRangesTest, IgnoredRangeOfAnotherDomainEndsBeforeWhatIsInside) {
    push("outer", 1);
    ranges.take(mine, {RangeKind::Push, true, 2, ""});
    push("inner", 1);
    pop(2);
    EXPECT_FALSE(ranges.ignores(mine));
    EXPECT_THAT(names(), ElementsAre("outer", "inner"));
}

TEST_F(OpenRangesTest, IgnoredRangeIsKnownHoweverDeepItIs) {
    for (size_t i = 0; i < 10 * OpenRanges::kMostPushed; ++i) push("level");
    push_ignored();
    push("inside");
    EXPECT_TRUE(ranges.ignores(mine));
    pop();
    EXPECT_TRUE(ranges.ignores(mine));
    pop();
    EXPECT_FALSE(ranges.ignores(mine));
}

TEST_F(OpenRangesTest, IgnoredRangeIsKnownHoweverManyAreStarted) {
    for (uint64_t id = 1; id <= 1000; ++id) start(id, "request");
    start(5000, "numsan:ignore", true);
    EXPECT_TRUE(ranges.ignores(mine));
    stop(5000);
    EXPECT_FALSE(ranges.ignores(mine));
}

TEST_F(OpenRangesTest, StartedRangesAreTheProcesss) {
    push("thread");
    start(1, "epoch 3");
    start(2, "evaluation");
    EXPECT_THAT(names(), ElementsAre("epoch 3", "evaluation", "thread"));
    std::thread([this] {
        ThreadRanges other;
        EXPECT_THAT(ranges.names(ranges.path(other)), ElementsAre("epoch 3", "evaluation"));
        ranges.take(other, {RangeKind::Stop, false, 1, ""});
    }).join();
    EXPECT_THAT(names(), ElementsAre("evaluation", "thread"));
    stop(2);
    EXPECT_THAT(names(), ElementsAre("thread"));
}

TEST_F(OpenRangesTest, LatestOfTheStartedRangesAreShown) {
    for (uint64_t id = 1; id <= 100; ++id) start(id, "x" + std::to_string(id));
    EXPECT_EQ(names().size(), OpenRanges::kMostNames);
    EXPECT_EQ(names().back(), "x100");
    for (uint64_t id = 2; id <= 100; ++id) stop(id);
    EXPECT_THAT(names(), IsEmpty());
    stop(1);
}

TEST_F(OpenRangesTest, InnermostNamesOfADeepNestAreShown) {
    const int deepest = int(OpenRanges::kMostPushed);
    for (int i = 0; i < deepest + 10; ++i) push("level " + std::to_string(i));
    const std::vector<std::string> seen = names();
    EXPECT_EQ(seen.size(), OpenRanges::kMostNames);
    EXPECT_EQ(seen.back(), "level " + std::to_string(deepest - 1));
    for (int i = 0; i < deepest + 7; ++i) pop();
    EXPECT_THAT(names(), ElementsAre("level 0", "level 1", "level 2"));
}

TEST_F(OpenRangesTest, PathsThatAreUsedAreNotForgotten) {
    push("run");
    push("first");
    const RangePath first = ranges.path(mine);
    pop();
    push("each step");
    const RangePath used = ranges.path(mine);
    pop();
    RangePath last;
    for (size_t i = 0; i < 2 * OpenRanges::kMostPaths; ++i) {
        push("step " + std::to_string(i));
        last = ranges.path(mine);
        pop();
        push("each step");
        EXPECT_EQ(ranges.path(mine).pushed, used.pushed);
        pop();
    }
    EXPECT_THAT(ranges.names(first), IsEmpty());
    EXPECT_THAT(ranges.names(used), ElementsAre("run", "each step"));
    EXPECT_THAT(ranges.names(last), ElementsAre("run", "step 16383"));
    EXPECT_THAT(names(), ElementsAre("run"));
    push("first");
    EXPECT_NE(ranges.path(mine).pushed, first.pushed) << "an old id names none";
    EXPECT_THAT(names(), ElementsAre("run", "first"));
}

TEST_F(OpenRangesTest, OpenPathsAreNotForgottenWhateverOthersEnter) {
    start(1, "epoch 3");
    push("evaluate");
    std::thread([this] {
        ThreadRanges other;
        ranges.take(other, {RangeKind::Push, false, 0, "train"});
        for (size_t i = 0; i < 2 * OpenRanges::kMostPaths; ++i) {
            ranges.take(other, {RangeKind::Push, false, 0, ("step " + std::to_string(i)).c_str()});
            ranges.take(other, {RangeKind::Pop, false, 0, ""});
        }
        EXPECT_THAT(ranges.names(ranges.path(other)), ElementsAre("epoch 3", "train"));
        ranges.take(other, {RangeKind::Pop, false, 0, ""});
    }).join();
    EXPECT_THAT(names(), ElementsAre("epoch 3", "evaluate"));
    stop(1);
}

TEST_F(OpenRangesTest, ThreadsThatEndWithOpenRangesAreBounded) {
    std::vector<ThreadRanges> ended(OpenRanges::kMostThreads + 10);
    for (ThreadRanges& thread : ended) ranges.take(thread, {RangeKind::Push, false, 0, "left open"});
    EXPECT_THAT(ranges.names(ranges.path(ended.front())), ElementsAre("left open"));
    EXPECT_THAT(ranges.names(ranges.path(ended.back())), IsEmpty());
    ranges.take(ended.back(), {RangeKind::Push, true, 0, "numsan:ignore"});
    EXPECT_TRUE(ranges.ignores(ended.back())) << "without names, too";
    ranges.take(ended.back(), {RangeKind::Pop, false, 0, ""});
    EXPECT_FALSE(ranges.ignores(ended.back()));
    ranges.take(ended.back(), {RangeKind::Pop, false, 0, ""});
    ranges.take(ended.front(), {RangeKind::Pop, false, 0, ""});
    ranges.take(ended.back(), {RangeKind::Push, false, 0, "again"});
    EXPECT_THAT(ranges.names(ranges.path(ended.back())), ElementsAre("again")) << "there is room again";
    for (ThreadRanges& thread : ended) ranges.take(thread, {RangeKind::Pop, false, 0, ""});
}

TEST_F(OpenRangesTest, ManyThreadsNameTheSameRanges) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([this, t] {
            ThreadRanges own;
            for (int i = 0; i < 2000; ++i) {
                const std::string inner = "inner " + std::to_string(i % 50) + " of " + std::to_string(t % 2);
                ranges.take(own, {RangeKind::Push, false, 0, "outer"});
                ranges.take(own, {RangeKind::Push, false, 0, inner.c_str()});
                EXPECT_THAT(ranges.names(ranges.path(own)), ElementsAre("outer", inner));
                ranges.take(own, {RangeKind::Pop, false, 0, ""});
                ranges.take(own, {RangeKind::Pop, false, 0, ""});
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST_F(OpenRangesTest, ChildOfAForkFindsTheLockFree) {
    std::atomic<bool> begun{false}, done{false};
    std::thread other([&] {
        ThreadRanges own;
        ranges.take(own, {RangeKind::Push, false, 0, "outer"});
        while (!done) {  // once round it allocates nothing: the vector has room, the names are short, the path is known
            ranges.take(own, {RangeKind::Push, false, 0, "busy"});
            ranges.take(own, {RangeKind::Pop, false, 0, ""});
            begun = true;
        }
        ranges.take(own, {RangeKind::Pop, false, 0, ""});
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(works_in_child(ranges, [this] {
            push("in the child");
            return names() == std::vector<std::string>{"in the child"};
        }));
    }
    done = true;
    other.join();
}

}  // namespace
}  // namespace numsan
