// Documents of reports, field by field; validity against the schema is not checked here.
#include "host/report/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/builders.h"

namespace numsan {
namespace {

using testing::build_finding;
using testing::build_report;

TEST(JsonWriter, FirstBadIsUnravelledWithBitsOfTheLane) {
    const auto bad = finding_document(build_finding())["outputs"][0]["first_bad"];
    EXPECT_EQ(bad.dump(), R"({"index":[2,17],"value":"inf","bits":"0x7f800000"})");
    Finding half = build_finding();
    half.outputs[0].dtype = DType::Float16;
    half.outputs[0].health.first_bad_bits = 0x7c00;
    EXPECT_EQ(finding_document(half)["outputs"][0]["first_bad"]["bits"], "0x7c00");
}

TEST(JsonWriter, TheLastKernelIsTheFindingsOwn) {
    Finding finding = build_finding();
    EXPECT_TRUE(finding_document(finding)["kernel"].is_null());
    EXPECT_FALSE(finding_document(finding).contains("launches"));
    finding.launches = {{"first", "cuLaunchKernel", {1, 2, 3}, {4, 5, 6}, 7, 0x1f, 8, 5},
                        {"second", "", {}, {}, 0, 0, 9}};
    const auto document = finding_document(finding);
    EXPECT_EQ(document["kernel"], "second");
    EXPECT_EQ(document["launches"][0].dump(),
              R"({"kernel":"first","call":"cuLaunchKernel","grid":[1,2,3],"block":[4,5,6],"shared_bytes":7,)"
              R"("stream":"0x1f","correlation_id":8,"number":5})");
}

TEST(JsonWriter, NothingFiniteGivesNulls) {
    Finding finding = build_finding();
    finding.outputs[0].health.finite = 0;
    const auto tensor = finding_document(finding)["outputs"][0];
    for (const char* key : {"absmax", "absmin", "min", "max"}) EXPECT_TRUE(tensor[key].is_null()) << key;
}

TEST(JsonWriter, ValuesThatWereGoneAreNotExact) {
    Finding finding = build_finding();
    finding.inputs[0].health = Health{};
    const auto tensor = finding_document(finding)["inputs"][0];
    EXPECT_EQ(tensor["elements"], 4096);
    EXPECT_EQ(tensor["exact"], false);
    EXPECT_TRUE(tensor["first_bad"].is_null());
}

TEST(JsonWriter, NonFiniteNumbersAndInvalidUtf8StayValidJson) {
    Report report = build_report();
    report.run.wall_s = NAN;
    report.run.hook_s = INFINITY;
    report.findings[0].category.confidence = NAN;
    report.findings[0].happened = "broken \xff\xc3 text";
    const auto document = nlohmann::json::parse(to_json(report), nullptr, false);
    ASSERT_FALSE(document.is_discarded());
    EXPECT_EQ(document["cost"]["wall_s"], 0.0);
    EXPECT_TRUE(document["cost"]["hook_s"].is_null());
    EXPECT_EQ(document["findings"][0]["title"], "first infinity of this run: broken \xef\xbf\xbd\xef\xbf\xbd text");
}

TEST(JsonWriter, ACellHasItsNumber) {
    Finding finding = testing::build_finding();
    EXPECT_FALSE(finding_document(finding)["location"].contains("cell"));
    finding.location->cell = 7;
    EXPECT_EQ(finding_document(finding)["location"]["cell"], 7);
}

TEST(JsonWriter, History) {
    Finding finding = build_finding();
    EXPECT_EQ(finding_document(finding)["history"].dump(), "[]");
    finding.history = {{411, 640.0}, {412, std::nullopt}};
    EXPECT_EQ(finding_document(finding)["history"].dump(),
              R"([{"step":411,"absmax":640.0},{"step":412,"absmax":null}])");
}

TEST(JsonWriter, EachLineOfHelpSaysWhatItChanges) {
    Finding finding = testing::build_finding();
    finding.help = {HelpLine{"bound it", "eps clamp"}, HelpLine{"look", "check"}};
    const auto document = finding_document(finding);
    EXPECT_EQ(document["help"].dump(), R"(["bound it","look"])");
    EXPECT_EQ(document["fixes"].dump(), R"([["clamp","eps"],["check"]])");
}

TEST(JsonWriter, LastOpThatMetAValueWhichEscapedNowhere) {
    Finding finding = testing::build_finding();
    EXPECT_FALSE(finding_document(finding)["escape"].contains("last"));
    finding.escape.last = LastUse{Fate::Masked, "aten::where", Place{"/job/loss.py", 21, "loss", "x"}};
    auto last = finding_document(finding)["escape"]["last"];
    EXPECT_EQ(last["fate"], "masked");
    EXPECT_EQ(last["op"], "aten::where");
    EXPECT_EQ(last["location"]["line"], 21);
    finding.escape.last = LastUse{};
    last = finding_document(finding)["escape"]["last"];
    EXPECT_EQ(last["fate"], "unread");
    EXPECT_TRUE(last["op"].is_null() && last["location"].is_null());
}

TEST(JsonWriter, Verdict) {
    Report report = build_report();
    EXPECT_EQ(report_document(report)["verdict"], "findings");
    report.findings.clear();
    EXPECT_EQ(report_document(report)["verdict"], "clean");
    report.run.dropped = 1;
    EXPECT_EQ(report_document(report)["verdict"], "incomplete");
}

TEST(JsonWriter, WhatGaveWayIsInTheCoverageWhereSomethingDid) {
    Report report = build_report();
    report.run.forgotten.clear();
    EXPECT_FALSE(nlohmann::json::parse(to_json(report))["coverage"].contains("forgotten"));
    report.run.forgotten = {{"births", 3}, {"stacks", 70000}};
    const auto document = nlohmann::json::parse(to_json(report));
    EXPECT_EQ(document["coverage"]["forgotten"].dump(), R"({"births":3,"stacks":70000})");
    EXPECT_EQ(document["coverage"]["dropped"], report.run.dropped) << "nothing was lost that makes it incomplete";
}

}  // namespace
}  // namespace numsan
