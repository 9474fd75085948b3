// Two reports are compared by what they say of the program.
#include "host/report/report_difference.h"

#include <gtest/gtest.h>

#include "host/report/json_writer.h"

namespace numsan {
namespace {

TEST(ReportDifference, TimesAndVersionsAreNone) {
    Report before, now;
    before.run.version = "1";
    before.run.wall_s = 1;
    before.run.ended = "2026-01-01T00:00:00Z";
    EXPECT_EQ(report_differences(to_json(before), to_json(now)), std::vector<std::string>());
}

TEST(ReportDifference, AReplayHasNoTensorsToDump) {
    Report before, now;
    before.findings.emplace_back();
    now.findings.emplace_back();
    before.findings[0].dump = "dumps/numsan-7-1.safetensors";
    EXPECT_EQ(report_differences(to_json(before), to_json(now)), std::vector<std::string>());
}

TEST(ReportDifference, SaysWhatItWasAndIs) {
    Report before, now;
    before.run.steps = 3;
    now.run.steps = 4;
    EXPECT_EQ(report_differences(to_json(before), to_json(now)), std::vector<std::string>{"run/steps: 3, now 4"});
    now.run.steps = 3;
    now.findings.emplace_back();
    const auto lines = report_differences(to_json(before), to_json(now));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].find("findings/0: nothing, now {"), 0u) << lines[0];
    EXPECT_EQ(lines[1], "verdict: \"clean\", now \"findings\"");
}

TEST(ReportDifference, WhatIsNoReportIsADifference) {
    EXPECT_EQ(report_differences("{}", to_json(Report())).size(), 1u);
}

}  // namespace
}  // namespace numsan
