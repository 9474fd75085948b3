#include "host/log/rank_list.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(RankList, RunsAreShort) {
    EXPECT_EQ(rank_list({}), "");
    EXPECT_EQ(rank_list({3}), "3");
    EXPECT_EQ(rank_list({0, 1, 2, 3, 7}), "0-3, 7");
    EXPECT_EQ(rank_list({0, 1}), "0-1");
}

TEST(RankList, RanksAtOneDistanceAreShort) {
    EXPECT_EQ(rank_list({0, 8, 16, 24}), "0-24:8");
    EXPECT_EQ(rank_list({0, 8, 16}), "0, 8, 16");
    EXPECT_EQ(rank_list({0, 1, 2, 8, 16, 24, 32}), "0-2, 8-32:8");
}

TEST(RankList, IsReadBack) {
    for (const std::vector<int64_t>& ranks :
         {std::vector<int64_t>{}, {5}, {0, 1, 2, 3, 7}, {0, 8, 16, 24}, {1, 3, 4, 9, 12, 15, 18, 40}, {3, 2, 1, 0}}) {
        EXPECT_EQ(ranks_of_list(rank_list(ranks)), ranks);
    }
}

TEST(RankList, WhatIsNoneIsEmpty) {
    for (const char* text : {"x", "1-", "3-1", "0-8:0", "0-8:", "1,2", "1, ", "-1", "1 2"}) {
        EXPECT_TRUE(ranks_of_list(text).empty()) << text;
    }
    EXPECT_TRUE(ranks_of_list("0-9223372036854775807").empty());
    EXPECT_TRUE(ranks_of_list("9223372036854775807").empty());
    EXPECT_TRUE(ranks_of_list("0-4:9223372036854775807").empty());
    EXPECT_EQ(ranks_of_list("0-3", 4).size(), 4U);
    EXPECT_TRUE(ranks_of_list("0-4", 4).empty());
}

}  // namespace
}  // namespace numsan
