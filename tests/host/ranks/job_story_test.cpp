#include "host/ranks/job_story.h"

#include <gtest/gtest.h>

#include "tests/host/ranks/made_job.h"

namespace numsan {
namespace {

using Json = MadeJob::Json;
using Ranks = std::vector<int64_t>;

TEST(JobStory, TheFirstIsTheOneThatIsBehindNobody) {
    MadeJob job;
    MadeJob::finds(job.rank(0, 2), "a", 1, 9);
    MadeJob::finds(job.rank(1, 2), "b", 5, 8);
    const SortedReports sorted = job.sorted();
    const JobStory story = story_of(sorted.jobs[0]);
    ASSERT_EQ(story.own.size(), 2U);
    EXPECT_EQ(story.own[0].first.rank, 1);
}

TEST(JobStory, WhereItIsNotKnownHowManyHadBegunTheStepDecides) {
    MadeJob job;
    MadeJob::finds(job.rank(0, 2), "a", 1, 9)["collectives"] = nullptr;
    MadeJob::finds(job.rank(1, 2), "b", 5, 8);
    const SortedReports sorted = job.sorted();
    EXPECT_EQ(story_of(sorted.jobs[0]).own[0].first.rank, 0);
}

TEST(JobStory, AGroupOfWhichNoneHadBegunCountsAsNone) {
    MadeJob job;
    MadeJob::finds(job.rank(0, 2), "a", 1, 1);
    Json& none = MadeJob::finds(job.rank(1, 2), "b", 5, 0);
    none["collectives"] = Json::object();
    const SortedReports sorted = job.sorted();
    EXPECT_EQ(story_of(sorted.jobs[0]).own[0].first.rank, 1);
}

TEST(JobStory, GroupsThatContradictEachOtherLeaveItToTheFewest) {
    MadeJob job;
    const auto in_two = [](Json& report, int64_t first, int64_t second, int64_t step) {
        report["run"]["groups"].push_back({{"name", "1"}, {"rank", 0}, {"size", 2}});
        MadeJob::finds(report, "f" + std::to_string(step), step, first)["collectives"]["1"] = second;
    };
    in_two(job.rank(0, 3), 1, 9, 1);
    in_two(job.rank(1, 3), 9, 1, 2);
    in_two(job.rank(2, 3), 5, 5, 0);
    const SortedReports sorted = job.sorted();
    EXPECT_EQ(story_of(sorted.jobs[0]).own[0].first.rank, 0) << "behind in one, as rank 1; rank 2 in both";
}

TEST(JobStory, RanksAreSorted) {
    MadeJob job;
    MadeJob::sends(MadeJob::finds(job.rank(0, 7), "a", 1, 1), {MadeJob::operation(2)});
    MadeJob::receives(MadeJob::finds(job.rank(1, 7), "r", 1, 1), MadeJob::operation(2));
    job.rank(2, 7);
    job.rank(3, 7)["run"]["ended"] = nullptr;
    job.rank(4, 7)["verdict"] = "incomplete";
    job.rank(5, 7)["run"]["exit_status"] = 3;
    const SortedReports sorted = job.sorted();
    const JobStory story = story_of(sorted.jobs[0]);
    EXPECT_EQ(story.only_received, Ranks{1});
    EXPECT_EQ(story.quiet, (Ranks{2, 5}));
    EXPECT_EQ(story.not_ended, Ranks{3});
    EXPECT_EQ(story.lossy, Ranks{4});
    EXPECT_EQ(story.missing, Ranks{6});
    EXPECT_FALSE(story.quiet_write_none);
    EXPECT_EQ(story.failed, (std::map<int64_t, Ranks>{{3, {5}}}));
}

TEST(JobStory, QuietRanksWriteNoReportWhereThereAreManyOrThatIsAsked) {
    for (const auto& [size, option, expected] :
         {std::tuple(8, "", false), {9, "", true}, {9, "always", false}, {2, "finding", true}}) {
        MadeJob job;
        job.rank(0, size)["run"]["options"]["report_when"] = option;
        const SortedReports sorted = job.sorted();
        EXPECT_EQ(story_of(sorted.jobs[0]).quiet_write_none, expected) << size << option;
    }
}

TEST(JobStory, WhatCameBackIsNoOtherRanks) {
    MadeJob job;
    Json& first = job.rank(0, 2);
    MadeJob::sends(MadeJob::finds(first, "a", 1, 1), {MadeJob::operation(1, 1, 0)});
    MadeJob::receives(MadeJob::finds(first, "back", 2, 1), MadeJob::operation(1, 1, 0));
    Json& other = MadeJob::finds(job.rank(1, 2), "r", 1, 1);
    MadeJob::receives(other, MadeJob::operation(1, 0, 0));
    MadeJob::sends(other, {MadeJob::operation(1, 0, 0)});
    const SortedReports sorted = job.sorted();
    const JobStory story = story_of(sorted.jobs[0]);
    ASSERT_EQ(story.received.size(), 1U);
    EXPECT_EQ(story.received[0].ranks(), Ranks{1});
    EXPECT_TRUE(story.received[0].came_back());
    EXPECT_EQ(story.received[0].sightings.size(), 2U);
    EXPECT_EQ(story.received[0].first.rank, 1);
}

}  // namespace
}  // namespace numsan
