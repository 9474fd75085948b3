#include "interpose/libraries/nccl/nccl_group.h"

#include <gtest/gtest.h>

#include <thread>

namespace numsan::nccl {
namespace {

LibraryCall call_of(const char* name) {
    LibraryCall call{};
    call.name = name;
    return call;
}

TEST(NcclGroup, KeepsItsCallsUntilTheOutermostEnd) {
    EXPECT_FALSE(OpenGroup::is_open());
    OpenGroup::begin();
    OpenGroup::add(call_of("first"));
    OpenGroup::begin();
    OpenGroup::add(call_of("second"));
    EXPECT_FALSE(OpenGroup::end());
    EXPECT_TRUE(OpenGroup::is_open());
    EXPECT_TRUE(OpenGroup::end());
    EXPECT_FALSE(OpenGroup::is_open());
    const auto calls = OpenGroup::take();
    ASSERT_NE(calls, nullptr);
    ASSERT_EQ(calls->size(), 2u);
    EXPECT_STREQ(calls->back().name, "second");
    EXPECT_EQ(calls->back().unseen, nullptr);
    EXPECT_EQ(OpenGroup::take(), nullptr);
}

TEST(NcclGroup, AnEndThatWasNotSeenToBeginIsNone) {
    EXPECT_FALSE(OpenGroup::end());
    EXPECT_FALSE(OpenGroup::is_open());
}

TEST(NcclGroup, IsItsThreadsOwn) {
    OpenGroup::begin();
    std::thread([] { EXPECT_FALSE(OpenGroup::is_open()); }).join();
    EXPECT_TRUE(OpenGroup::end());
}

TEST(NcclGroup, SaysThatThereWereTooMany) {
    OpenGroup::begin();
    for (size_t i = 0; i <= OpenGroup::kMost; ++i) OpenGroup::add(call_of("one"));
    OpenGroup::end();
    const auto calls = OpenGroup::take();
    ASSERT_EQ(calls->size(), OpenGroup::kMost);
    EXPECT_EQ((*calls)[OpenGroup::kMost - 2].unseen, nullptr);
    EXPECT_NE(calls->back().unseen, nullptr);
}

}  // namespace
}  // namespace numsan::nccl
