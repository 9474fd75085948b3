// Whole texts against golden files; NUMSAN_UPDATE_GOLDEN=1 rewrites them.
#include "host/report/text.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "host/report/explain.h"
#include "host/analyze/tables.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

using testing::build_finding;
using testing::build_report;

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(NUMSAN_SOURCE_DIR) + "/tests/host/report/golden/" + name;
    if (std::getenv("NUMSAN_UPDATE_GOLDEN")) std::ofstream(path) << text;
    EXPECT_EQ(text, testing::file_text(path)) << name;
}

TextStyle plain() { return {false, 0, "/home/user/job"}; }

TEST(Text, BackwardFinding) {
    expect_golden("backward.txt", render_finding(build_finding(), plain()) + "\n" +
                                      render_summary(build_report(), plain(), "numsan-4242.json"));
}

TEST(Text, NarrowAndColoured) { expect_golden("narrow_color.txt", render_finding(build_finding(), {true, 60, ""})); }

TEST(Text, WithoutALineAndWithValuesGone) {
    Finding finding = build_finding();
    finding.location.reset();
    finding.module.reset();
    finding.forward.reset();
    finding.inputs[0].health = Health{};
    finding.severity = Severity::Warning;
    finding.escape = {EscapeInto::Host, std::nullopt, 412, 91260};
    finding.count = 1234567;
    expect_golden("no_line.txt", render_finding(finding, plain()));
}

TEST(Text, IncompleteSummary) {
    Report report = build_report();
    report.findings.clear();
    report.run.dropped = 3;
    report.run.blind_spots = {"compiled kernels on the CPU"};
    report.run.suppressed = {{"op:aten::log", 0}, {"category:N8", 2}};
    expect_golden("incomplete.txt", render_summary(report, plain()));
}

TEST(Text, Figures) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(-1234567), "-1 234 567");
    EXPECT_EQ(value_text(0.00024), "2.4e-04");
    EXPECT_EQ(value_text(1e38), "1.0e+38");
    EXPECT_EQ(value_text(-812.5), "-812.5");
}

TEST(Explain, EveryMechanismAndCategoryHasAPage) {
    for (const Mechanism& row : mechanisms())
        EXPECT_NE(explain_word(row.code).text.find("healthy"), std::string::npos) << row.id;
    for (const Category& row : categories())
        EXPECT_NE(explain_word(row.slug).text.find("healthy"), std::string::npos) << row.id;
    EXPECT_EQ(explain_word("unsafe-gradiant").nearest, "unsafe-gradient");
}

}  // namespace
}  // namespace numsan
