#include "host/ranks/origins.h"

#include <gtest/gtest.h>

#include "tests/host/ranks/made_job.h"

namespace numsan {
namespace {

using Json = MadeJob::Json;

/// For each sighting the rank of its origin, -1 where that is lost, and how many ranks handed it on.
std::vector<std::pair<int64_t, size_t>> origins(MadeJob& made) {
    const SortedReports sorted = made.sorted();
    EXPECT_EQ(sorted.jobs.size(), 1U);
    const std::vector<Sighting> sightings = sightings_of(sorted.jobs[0]);
    std::vector<std::pair<int64_t, size_t>> out;
    for (const RankOrigin& origin : origins_of(sorted.jobs[0], sightings))
        out.emplace_back(origin.is_lost ? -1 : sightings[origin.sighting].rank, origin.hops);
    return out;
}

using Origins = std::vector<std::pair<int64_t, size_t>>;

TEST(Origins, AnOperationOfTheGroupIsKnownByItsNumber) {
    MadeJob job;
    MadeJob::receives(MadeJob::finds(job.rank(0, 3), "r", 2, 7), MadeJob::operation(8));
    MadeJob::sends(MadeJob::finds(job.rank(1, 3), "early", 1, 3), {MadeJob::operation(4)});
    MadeJob::sends(MadeJob::finds(job.rank(2, 3), "late", 2, 7), {MadeJob::operation(8)});
    EXPECT_EQ(origins(job), (Origins{{2, 1}, {1, 0}, {2, 0}}));
}

TEST(Origins, WhereTheNumberFitsNobodysAnEarlierSenderIt) {
    MadeJob job;
    MadeJob::receives(MadeJob::finds(job.rank(0, 3), "r", 2, 7), MadeJob::operation(8));
    MadeJob::sends(MadeJob::finds(job.rank(1, 3), "early", 1, 3), {MadeJob::operation(4)});
    MadeJob::sends(MadeJob::finds(job.rank(2, 3), "late", 2, 9), {MadeJob::operation(10)});
    EXPECT_EQ(origins(job), (Origins{{1, 1}, {1, 0}, {2, 0}})) << "what was sent later came later";
}

TEST(Origins, BetweenTwoRanksDirectionPeerAndTagCount) {
    MadeJob job;
    MadeJob::receives(MadeJob::finds(job.rank(0, 4), "r", 2, 0), MadeJob::operation(1, 2, 5));
    MadeJob::sends(MadeJob::finds(job.rank(1, 4), "to 3", 1, 0), {MadeJob::operation(1, 3, 5)});
    MadeJob::sends(MadeJob::finds(job.rank(2, 4), "to 0", 2, 0),
                   {MadeJob::operation(1, 0, 4), MadeJob::operation(1, 0, 5)});
    MadeJob::sends(MadeJob::finds(job.rank(3, 4), "to 0, too", 1, 0), {MadeJob::operation(1, 0, 5)});
    EXPECT_EQ(origins(job)[0], (std::pair<int64_t, size_t>(2, 1)));
}

TEST(Origins, WhatGoesToOneRankOfTheGroupIsNotReceivedByAnother) {
    MadeJob job;
    MadeJob::receives(MadeJob::finds(job.rank(0, 3), "r", 2, 0), MadeJob::operation(1));
    MadeJob::receives(MadeJob::finds(job.rank(1, 3), "r", 2, 0), MadeJob::operation(1));
    MadeJob::sends(MadeJob::finds(job.rank(2, 3), "gather", 2, 0), {MadeJob::operation(1, 1)});
    EXPECT_EQ(origins(job), (Origins{{0, 0}, {2, 1}, {2, 0}}));
}

TEST(Origins, AChainEndsAtItsFirst) {
    MadeJob job;
    MadeJob::sends(MadeJob::finds(job.rank(0, 4), "made", 2, 0), {MadeJob::operation(1, 1, 0)});
    for (int rank = 1; rank < 4; ++rank) {
        Json& finding = MadeJob::finds(job.rank(rank, 4), "r", 2, 0);
        MadeJob::receives(finding, MadeJob::operation(1, rank - 1, 0));
        MadeJob::sends(finding, {MadeJob::operation(1, rank + 1, 0)});
    }
    EXPECT_EQ(origins(job), (Origins{{0, 0}, {0, 1}, {0, 2}, {0, 3}}));
}

TEST(Origins, ASenderWithoutAReportToTheEndIsLost) {
    for (const bool there : {false, true}) {
        MadeJob job;
        MadeJob::receives(MadeJob::finds(job.rank(0, 2), "r", 2, 0), MadeJob::operation(1));
        if (there) job.rank(1, 2)["run"]["ended"] = nullptr;
        EXPECT_EQ(origins(job), (Origins{{-1, 0}})) << there;
    }
    MadeJob whole;
    MadeJob::receives(MadeJob::finds(whole.rank(0, 2), "r", 2, 0), MadeJob::operation(1));
    whole.rank(1, 2);
    EXPECT_EQ(origins(whole), (Origins{{0, 0}})) << "nobody sent it: the operation made it";
}

TEST(Origins, SilentRanksThatMaySendAreThoseOfTheGroup) {
    MadeJob made;
    Json& receiver = made.rank(0, 8);
    receiver["run"]["groups"][0]["ranks"] = "0-6:2";
    MadeJob::receives(MadeJob::finds(receiver, "r", 2, 0), MadeJob::operation(1));
    made.rank(2, 8);
    made.rank(4, 8)["run"]["ended"] = nullptr;
    const SortedReports sorted = made.sorted();
    const SilentRanks silent(sorted.jobs[0]);
    Sighting sighting = sightings_of(sorted.jobs[0])[0];
    EXPECT_EQ(silent.that_may_send(sighting), (std::vector<int64_t>{4, 6}));
    RankFinding finding = *sighting.finding;
    finding.received.peer = 3;
    sighting.finding = &finding;
    EXPECT_EQ(silent.that_may_send(sighting), (std::vector<int64_t>{6})) << "the rank is known";
}

}  // namespace
}  // namespace numsan
