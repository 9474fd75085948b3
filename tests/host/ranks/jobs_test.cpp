#include "host/ranks/jobs.h"

#include <gtest/gtest.h>

#include "tests/host/ranks/made_job.h"

namespace numsan {
namespace {

using Json = MadeJob::Json;

void at(Json& report, const char* started, const char* ended, const char* id) {
    report["run"]["started"] = started;
    report["run"]["ended"] = ended == nullptr ? Json(nullptr) : Json(ended);
    report["run"]["id"] = id;
}

TEST(Jobs, RanksOfOneJobAreOne) {
    MadeJob job;
    for (int rank = 0; rank < 3; ++rank) job.rank(rank, 3);
    const SortedReports sorted = job.sorted();
    ASSERT_EQ(sorted.jobs.size(), 1U);
    EXPECT_EQ(sorted.jobs[0].ranks.size(), 3U);
    EXPECT_EQ(sorted.jobs[0].reports(), 3U);
    EXPECT_TRUE(sorted.told_apart_by.empty());
}

TEST(Jobs, AnotherJobOrWorldSizeIsAnotherRun) {
    MadeJob job;
    job.rank(0, 3);
    job.rank(1, 3)["run"]["job"] = "none 1 node0 29500";
    job.rank(2, 4);
    const SortedReports sorted = job.sorted();
    EXPECT_EQ(sorted.jobs.size(), 3U);
    EXPECT_EQ(sorted.told_apart_by, (std::vector<std::string>{"job", "world size"}));
}

TEST(Jobs, ARankThatIsThereTwiceWasStartedTwice) {
    MadeJob job;
    at(job.rank(0, 3), "2026-11-23T10:00:02Z", nullptr, "a");  // killed: it does not say when
    at(job.rank(1, 3), "2026-11-23T10:00:01Z", "2026-11-23T10:00:30Z", "b");
    at(job.rank(0, 3), "2026-11-24T10:00:00Z", "2026-11-24T10:05:00Z", "c");
    at(job.rank(2, 3), "2026-11-24T10:00:03Z", "2026-11-24T10:05:00Z", "d");
    const SortedReports sorted = job.sorted();
    ASSERT_EQ(sorted.jobs.size(), 2U);
    EXPECT_EQ(sorted.jobs[0].started, "2026-11-23T10:00:01Z");
    EXPECT_EQ(sorted.jobs[0].own(0).id, "a");
    EXPECT_EQ(sorted.jobs[0].own(1).id, "b");
    EXPECT_EQ(sorted.jobs[1].own(0).id, "c");
    EXPECT_EQ(sorted.jobs[1].own(2).id, "d");
    ASSERT_EQ(sorted.told_apart_by.size(), 1U);
}

TEST(Jobs, ProcessesThatARankStartsAreOfItsRun) {
    MadeJob job;
    at(job.rank(0, 1), "2026-11-23T10:00:00Z", "2026-11-23T10:05:00Z", "a");
    at(job.rank(0, 1), "2026-11-23T10:06:00Z", "2026-11-23T10:06:10Z", "a");  // forked
    Json& helper = job.rank(0, 1);
    at(helper, "2026-11-23T10:01:00Z", "2026-11-23T10:02:00Z", "b");
    helper["run"]["pid"] = 7;
    helper["run"]["argv"] = {"python", "helper.py"};
    const SortedReports sorted = job.sorted();
    ASSERT_EQ(sorted.jobs.size(), 1U);
    EXPECT_EQ(sorted.jobs[0].reports(), 3U);
    EXPECT_EQ(sorted.jobs[0].own(0).path, "r0");
}

TEST(Jobs, WithoutARankAProcessIsOfNone) {
    MadeJob job;
    job.rank(0, 2);
    job.rank(1, 2)["run"]["rank"] = nullptr;
    const SortedReports sorted = job.sorted();
    EXPECT_EQ(sorted.jobs.size(), 1U);
    EXPECT_EQ(sorted.unranked.size(), 1U);
}

}  // namespace
}  // namespace numsan
