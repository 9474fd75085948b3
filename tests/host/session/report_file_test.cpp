#include "host/session/report_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/support/builders.h"

namespace numsan {
namespace {

class ReportFileTest : public ::testing::Test {
  protected:
    ReportFileTest() { options.report = folder.file("report.json"); }

    static Report report_of(std::optional<int> rank, std::optional<int> world_size, bool finds = false) {
        Report report;
        report.run.pid = rank.value_or(90) + 100;
        report.run.process = "boot/1/" + std::to_string(report.run.pid);
        report.run.launch.rank = rank;
        report.run.launch.world_size = world_size;
        if (finds) report.findings.push_back(testing::build_finding());
        return report;
    }
    bool there() const {
        struct stat file {};
        return stat(options.report.c_str(), &file) == 0;
    }
    /// Whether there is a file at the beginning of a run, and at its end.
    std::pair<bool, bool> written(const Report& report) {
        ReportFile file(options, "");
        file.begin(report);
        const bool begun = there();
        EXPECT_EQ(file.write(report), std::nullopt);
        const std::pair<bool, bool> both(begun, there());
        EXPECT_EQ(file.is_own(), both.second);
        remove(options.report.c_str());
        return both;
    }
    nlohmann::json rank_in_file() const {
        return nlohmann::json::parse(testing::file_text(options.report))["run"]["rank"];
    }

    testing::ScratchFolder folder;
    Options options;
};

using Written = std::pair<bool, bool>;

TEST_F(ReportFileTest, OfManyRanksOnlyThoseThatFoundSomethingWrite) {
    EXPECT_EQ(written(report_of(3, 8)), Written(true, true));
    EXPECT_EQ(written(report_of(3, 9)), Written(false, false));
    EXPECT_EQ(written(report_of(3, 9, true)), Written(true, true));
    EXPECT_EQ(written(report_of({}, {})), Written(true, true)) << "of no job";
}

TEST_F(ReportFileTest, WhatAnEarlierRunOfTheRankLeftIsGone) {
    ReportFile before(options, "");
    EXPECT_EQ(before.write(report_of(3, 9, true)), std::nullopt);
    ASSERT_TRUE(there());
    const Report now = report_of(3, 9);  // the same process, which runs another program by now
    ReportFile file(options, "");
    file.begin(now);
    EXPECT_FALSE(there()) << "a merge would take it for this run's";
    EXPECT_EQ(file.write(now), std::nullopt);
    EXPECT_FALSE(there());
}

TEST_F(ReportFileTest, AlwaysOrOnlyWithAFindingAsIsAsked) {
    options.report_when = ReportWhen::Always;
    EXPECT_EQ(written(report_of(3, 4096)), Written(true, true));
    options.report_when = ReportWhen::Finding;
    EXPECT_EQ(written(report_of(0, 2)), Written(false, false));
    EXPECT_EQ(written(report_of({}, {})), Written(false, false));
    EXPECT_EQ(written(report_of(0, 2, true)), Written(true, true));
}

TEST_F(ReportFileTest, WhoLostSomethingSaysSo) {
    Report report = report_of(3, 64);
    report.run.lose("half of it");
    EXPECT_EQ(written(report), Written(false, true)) << "at the beginning every run is incomplete";
}

TEST_F(ReportFileTest, AWorldSizeThatBecomesKnownLaterTakesTheFirstReportBack) {
    ReportFile file(options, "");
    file.begin(report_of({}, {}));
    EXPECT_TRUE(there());
    EXPECT_EQ(file.write(report_of(3, 64)), std::nullopt);
    EXPECT_FALSE(there());
    EXPECT_FALSE(file.is_own());
}

TEST_F(ReportFileTest, AProcessWithoutARankLeavesTheReportOfOneThere) {
    ReportFile launcher(options, ""), rank(options, "");
    EXPECT_EQ(rank.write(report_of(0, 4)), std::nullopt);
    EXPECT_EQ(launcher.write(report_of({}, {})), std::nullopt);
    EXPECT_EQ(rank_in_file(), 0);
    EXPECT_FALSE(launcher.is_own());
    EXPECT_EQ(launcher.write(report_of({}, {}, true)), std::nullopt);
    EXPECT_EQ(rank_in_file(), 0) << "what it found stands beside it";
    EXPECT_TRUE(launcher.is_own());
}

TEST_F(ReportFileTest, NoneIsNone) {
    options.report = "none";
    ReportFile file(options, "");
    file.begin(report_of(0, 1));
    EXPECT_EQ(file.write(report_of(0, 1, true)), std::nullopt);
    EXPECT_FALSE(file.is_own());
}

TEST_F(ReportFileTest, WhatCannotBeWrittenIsSaidOnce) {
    options.report = folder.file("no such folder/report.json");
    ReportFile file(options, "");
    EXPECT_NE(file.write(report_of(0, 1)), std::nullopt);
    EXPECT_EQ(file.write(report_of(0, 1)), std::nullopt);
}

}  // namespace
}  // namespace numsan
