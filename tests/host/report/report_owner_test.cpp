// Whose report a file is: its own word, and none for anything else.
#include "host/report/report_owner.h"

#include <gtest/gtest.h>

#include <fstream>

#include "host/report/json_writer.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

TEST(ReportOwner, IsWhatTheReportSays) {
    const std::string path = ::testing::TempDir() + "numsan_report_owner.json";
    Report report = testing::build_report();
    report.run.process = "5f0c/4026531836/77";
    std::ofstream(path) << to_json(report);
    const std::optional<ReportOwner> owner = owner_of_report(path);
    ASSERT_TRUE(owner.has_value());
    EXPECT_EQ(owner->pid, 4242);
    EXPECT_EQ(owner->process, "5f0c/4026531836/77");
    EXPECT_TRUE(owner->has_findings);
    report.findings.clear();
    std::ofstream(path) << to_json(report);
    EXPECT_FALSE(owner_of_report(path)->has_findings);
    std::ofstream(path) << "not a report";
    EXPECT_FALSE(owner_of_report(path).has_value());
    std::remove(path.c_str());
    EXPECT_FALSE(owner_of_report(path).has_value());
}

}  // namespace
}  // namespace numsan
