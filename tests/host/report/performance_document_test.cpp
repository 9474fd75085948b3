// What a report says of a slow run, as a document and as text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "host/explain/explain.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

Report slow_report() {
    Report report = testing::build_report();
    report.findings.clear();
    SlowFinding finding;
    finding.cause = SlowCause::Repeated;
    finding.op = "aten::tril";
    finding.location = Place{"/home/user/job/train.py", 12, "main", "mask = torch.ones(n, n).tril()"};
    finding.seconds = 0.0015;
    finding.share = 0.15;
    finding.count = 2;
    finding.measured = "`aten::tril` 2 times a step, 1.5 ms of 10 ms (15 %)";
    SlowFinding nowhere;
    nowhere.cause = SlowCause::Between;
    nowhere.measured = "no op runs for 1 ms of 10 ms (10 %)";
    report.run.slow = SlowRun{16, 0.01, {finding, nowhere}, {"what was not"}};
    return report;
}

TEST(PerformanceDocument, HasCostPlaceAndHelpOfEach) {
    const auto document = report_document(slow_report());
    EXPECT_EQ(document["verdict"], "clean");
    const auto& performance = document["performance"];
    EXPECT_EQ(performance["steps"], 16);
    EXPECT_EQ(performance["step_s"], 0.01);
    EXPECT_EQ(performance["not_measured"][0], "what was not");
    const auto& finding = performance["findings"][0];
    EXPECT_EQ(finding["code"], "NP105");
    EXPECT_EQ(finding["cause"], "repeated-work");
    EXPECT_EQ(finding["severity"], "info");
    EXPECT_EQ(finding["op"], "aten::tril");
    EXPECT_EQ(finding["location"]["line"], 12);
    EXPECT_EQ(finding["count"], 2);
    EXPECT_EQ(finding["share"], 0.15);
    EXPECT_EQ(finding["help"].size(), 1u);
    EXPECT_TRUE(performance["findings"][1]["location"].is_null());
    EXPECT_TRUE(performance["findings"][1]["op"].is_null());
}

TEST(PerformanceDocument, IsLeftOutWhereNothingWasMeasured) {
    EXPECT_FALSE(report_document(testing::build_report()).contains("performance"));
    EXPECT_EQ(render_performance(testing::build_report(), TextStyle{}), "");
    Report quick = slow_report();
    quick.run.slow->findings.clear();
    EXPECT_EQ(render_performance(quick, TextStyle{}), "");
}

TEST(PerformanceDocument, ReadsAsText) {
    TextStyle style;
    style.cwd = "/home/user/job";
    EXPECT_EQ(render_performance(slow_report(), style),
              R"(numsan: what makes the run slow, by 16 steps that were looked at:
info[NP105]: the same result is computed again in each step
  --> train.py:12 in main
   |
12 |     mask = torch.ones(n, n).tril()
   |
   = measured: `aten::tril` 2 times a step, 1.5 ms of 10 ms (15 %)
help: compute it once before the loop, or in the module's `__init__` as a buffer: `self.register_buffer("mask", mask, persistent=False)`
info[NP107]: no op runs between the end of a step and the next forward pass
  --> no source line is known
   |
   = measured: no op runs for 1 ms of 10 ms (10 %)
help: make the next batch while the model computes: a `DataLoader` with workers, or a thread that fills a queue
help: make tensors of whole numpy arrays, not of lists, which `torch.tensor` reads number by number; write files and print in some steps, not in each
)");
}

TEST(PerformanceDocument, DamagedOneReadsAsFarAsItGoes) {
    const auto document =
        nlohmann::ordered_json::parse(R"({"performance": {"steps": "x", "findings": [7, {"code": 5}]}})");
    EXPECT_NE(render_performance(document, TextStyle{}), "");
}

TEST(PerformanceDocument, EveryCauseHasAPage) {
    for (const SlowCauseInfo& row : kSlowCauses) {
        const std::string page = explain_word(row.code).text;
        EXPECT_NE(page.find("a program that has it"), std::string::npos) << row.code;
        EXPECT_EQ(page, explain_word(row.slug).text);
    }
}

}  // namespace
}  // namespace numsan
