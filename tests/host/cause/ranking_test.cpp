// The ranking over all rules: confidences, the order of facts, and no answer where nothing separates the causes.
#include "host/cause/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

TEST(Ranking, NothingMeasuredIsUnknown) {
    const Ranking ranking = rank_causes(features_of("mul", Mechanism::None, kNaN));
    EXPECT_EQ(ranking.guesses.front().id, CategoryId{"U"});
    EXPECT_EQ(ranking.facts, Facts{}) << "nothing speaks for not knowing";
}

TEST(Ranking, NamesEveryCauseOnceLikeliestFirst) {
    Features f = features_of("acos", Mechanism::DOM, kNaN);
    const Ranking ranking = rank_causes(f);
    std::set<std::string> ids;
    double sum = 0;
    double last = 1;
    for (const CategoryGuess& guess : ranking.guesses) {
        EXPECT_TRUE(ids.insert(to_string(guess.id)).second) << to_string(guess.id);
        EXPECT_GT(guess.confidence, 0);
        EXPECT_LE(guess.confidence, last);
        last = guess.confidence;
        sum += guess.confidence;
    }
    EXPECT_EQ(ids, (std::set<std::string>{"N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9", "U"}));
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_LE(sum, 1 + 1e-9);
}

TEST(Ranking, MoreEvidenceMakesSurer) {
    Features f = features_of_loss("log", Mechanism::DOM, kNegInf);
    const double bare = rank_causes(f).guesses.front().confidence;
    f.rounded.op = "sigmoid";
    const Ranking saturated = rank_causes(f);
    EXPECT_EQ(saturated.guesses.front().id, CategoryId{"N4"});
    EXPECT_GT(saturated.guesses.front().confidence, bare);
}

TEST(Ranking, StrongestFactFirstAndOfTheFirstCauseOnly) {
    Features f = features_of_loss("log", Mechanism::DOM, kNegInf);
    f.rounded.op = "sigmoid";
    EXPECT_EQ(rank_causes(f).facts,
              (Facts{"the logarithm is of a value that sigmoid had rounded to its limit",
                     "no parameter was read between this op and the loss: it is part of the loss"}));
}

TEST(Ranking, WhatNoOpWroteIsNotItsReadersFault) {
    Features f = features_of("mse_loss", Mechanism::DATA, kPosInf);
    f.none_read = true;
    f.overwritten = f.written_over = true;
    EXPECT_EQ(winner(f), "N9");
}

TEST(Ranking, OfKernelsWhoseOpsAreNotSeenTheMechanismIsAGuess) {
    const Features f = features_of(kCompiledRegion, Mechanism::INDET, kNaN);
    EXPECT_EQ(winner(f), "U");
}

TEST(Ranking, OfAKernelOfTheProgramsOwnNoTrainingIsSeen) {
    Features f = features_of("log<<<>>>", Mechanism::OVF, kPosInf);
    f.dtype = DType::Float16;
    f.narrow = true;
    EXPECT_EQ(winner(f), "U");
    EXPECT_TRUE(rank_causes(f).facts.empty());
}

}  // namespace
}  // namespace numsan
