// How a forest is walked, and that a document which is none is refused.
#include "host/diagnosis/learned/forest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

std::optional<Forest> read(const char* text) { return Forest::read(Json::parse(text), 2, 2); }

TEST(Forest, SharesAreTheMeanOverItsTrees) {
    const auto forest = read("[[[1, 0.5, 2], [[0, 1]], [[0, 0.25], [1, 0.75]]], [[[1, 1]]]]");
    ASSERT_TRUE(forest);
    const std::vector<double> below{9, 0.5}, above{9, 0.75};
    EXPECT_EQ(forest->shares(below), (std::vector<double>{0.5, 0.5}));
    EXPECT_EQ(forest->shares(above), (std::vector<double>{0.125, 0.875}));
}

TEST(Forest, WhatIsNotKnownIsBelowEachLimit) {
    const auto forest = read("[[[0, -1e30, 2], [[0, 1]], [[1, 1]]]]");
    ASSERT_TRUE(forest);
    EXPECT_EQ(forest->shares(std::vector<double>{NAN, 0}), (std::vector<double>{1, 0}));
    EXPECT_EQ(forest->shares(std::vector<double>{-INFINITY, 0}), (std::vector<double>{1, 0}));
    EXPECT_EQ(forest->shares(std::vector<double>{-1e29, 0}), (std::vector<double>{0, 1}));
}

TEST(Forest, FeaturesAreComparedAsTheyWereLearned) {
    const auto forest = read("[[[0, 0.1, 2], [[0, 1]], [[1, 1]]]]");
    ASSERT_TRUE(forest);
    EXPECT_EQ(forest->shares(std::vector<double>{0.1, 0}), (std::vector<double>{0, 1}))
        << "the float32 of 0.1 is above 0.1";
}

TEST(Forest, WhatIsNoForestIsRefused) {
    for (const char* text : {"{}", "[]", "[[]]", "[7]", "[[7]]", "[[[]]]", "[[[0, 0.5, 1], [[0, 1]]]]",
                             "[[[0, 0.5, 3], [[0, 1]], [[1, 1]]]]", "[[[2, 0.5, 2], [[0, 1]], [[1, 1]]]]",
                             "[[[-1, 0.5, 2], [[0, 1]], [[1, 1]]]]", "[[[0, null, 2], [[0, 1]], [[1, 1]]]]",
                             "[[[0, 0.5], [[0, 1]], [[1, 1]]]]", "[[[[2, 1]]]]", "[[[[0]]]]", "[[[[0, \"1\"]]]]",
                             "[[[[0, 1], 3]]]", "[[[0, 0.5, 2], [[0, 1]], [0, 0.5, 2]]]"}) {
        EXPECT_FALSE(read(text)) << text;
    }
}

}  // namespace
}  // namespace numsan
