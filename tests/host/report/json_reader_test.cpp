// Reading reports back: what is not one is refused with a reason and a byte.
#include "host/report/json_reader.h"

#include <gtest/gtest.h>

#include "host/report/json_writer.h"
#include "host/report/text.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

TEST(JsonReader, ReadsWhatTheWriterWrote) {
    const ReadResult result = parse_report("r", to_json(testing::build_report()));
    ASSERT_TRUE(result.ok()) << result.error;
    EXPECT_EQ(result.document["findings"][0]["code"], "NS102");
}

TEST(JsonReader, ValuesAreExact) {
    std::string report = to_json(testing::build_report());
    const std::string values =
        R"([18446744073709551615,-9223372036854775808,-0,0.1,3.4028234663852886e+38,5e-324,"\u00e9\ud83d\ude00"])";
    report.insert(report.rfind('}'), ",\"x\":" + values);
    const ReadResult result = parse_report("r", report);
    ASSERT_TRUE(result.ok()) << result.error;
    EXPECT_EQ(result.document["x"], nlohmann::ordered_json::parse(values));
    EXPECT_TRUE(result.document["x"][0].is_number_unsigned());
    EXPECT_TRUE(result.document["x"][2].is_number_integer());
}

TEST(JsonReader, WhatIsNoTextIsRefusedByBothReaders) {
    const std::string report = to_json(testing::build_report());
    for (const std::string value :
         {"\"\\udc00\"", "\"\\ud800\"", "\"\xff\"", "\"\xed\xa0\x80\"", "1e999", "01", "[1,]"}) {
        std::string made = report;
        made.insert(made.rfind('}'), ",\"x\":" + value);
        EXPECT_FALSE(parse_report("r", made).ok()) << value;
    }
    EXPECT_FALSE(parse_report("r", report + "x").ok());
}

TEST(JsonReader, EveryPrefixIsRefusedWithAByte) {
    const std::string text = to_json(testing::build_report());
    for (size_t length = 0; length + 2 < text.size(); length += 37) {
        EXPECT_EQ(parse_report("r", text.substr(0, length)).error.substr(0, 8), "r: byte ") << length;
    }
}

TEST(JsonReader, ForeignFileSaysWhatWasFound) {
    EXPECT_EQ(parse_report("r", R"({"schema":"other/2"})").error,
              "r: byte 1: not a numsan report: \"schema\" is \"other/2\" (expected \"numsan.report/1\")");
}

TEST(JsonReader, NestingThatCouldExhaustTheStackIsRefused) {
    const std::string deep = std::string(200000, '[') + std::string(200000, ']');
    EXPECT_EQ(parse_report("r", R"({"schema":)" + deep + "}").error,
              "r: byte 73: not a numsan report: nested deeper than any report is");
    std::string report = to_json(testing::build_report());
    report.insert(report.rfind('}'), ",\"x\":\"" + std::string(100, '[') + "\\\"" + "\"");
    EXPECT_TRUE(parse_report("r", report).ok()) << "brackets in a string nest nothing";
}

/// A report with `members`, a list of JSON members, added to its outermost object.
std::string with_members(const std::string& members) {
    std::string report = to_json(testing::build_report());
    return report.insert(report.rfind('}'), "," + members);
}

/// "key0":0,"key1":1 and so on.
std::string many_keys(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        out += (i == 0 ? "\"key" : ",\"key") + number + "\":" + number;
    }
    return out;
}

TEST(JsonReader, ObjectsWithTooManyKeysAreRefusedBeforeTheyCostTime) {
    const std::string most = with_members("\"x\":{" + many_keys(1000) + "}");
    EXPECT_TRUE(parse_report("r", most).ok()) << "keys of one object do not count for another";
    const std::string report = with_members("\"x\":{" + many_keys(100000) + "}");
    const size_t byte = report.find("\"key1000\":") + std::string("\"key1000\"").size();
    EXPECT_EQ(parse_report("r", report).error,
              "r: byte " + std::to_string(byte) + ": not a numsan report: an object has more than 1000 keys");
    EXPECT_TRUE(parse_report("r", with_members("\"x\":\"" + std::string(2000, ':') + "\"")).ok());
}

TEST(JsonReader, IntegersAreReadExactlyOrRefused) {
    for (const char* digits : {"-9223372036854775808", "9223372036854775808", "18446744073709551615"}) {
        const ReadResult result = parse_report("r", with_members(std::string("\"x\":") + digits));
        ASSERT_TRUE(result.ok()) << result.error;
        EXPECT_EQ(result.document["x"].dump(), digits);
    }
    for (const char* digits : {"-9223372036854775809", "18446744073709551616"}) {
        const std::string report = with_members(std::string("\"x\":") + digits);
        EXPECT_EQ(parse_report("r", report).error,
                  "r: byte " + std::to_string(report.find(digits)) +
                      ": not a numsan report: an integer outside of -9223372036854775808 .. 18446744073709551615");
    }
    EXPECT_TRUE(parse_report("r", with_members("\"x\":1e30,\"y\":1.5E+20")).ok()) << "what is written as a real is one";
}

TEST(JsonReader, SkimmedListsAreEmptyAndTheRestIsWhole) {
    const std::string report = with_members(
        R"("history":[1],"findings":[{"id":"F1","history":[{"step":1}],"stack":[2],"forward":{"op":"o","stack":[[3]]},"x":{"stack":[4]}}])");
    const ReadResult whole = parse_report("r", report);
    ReadResult skimmed = parse_report("r", report, Skim::Lists);
    ASSERT_TRUE(whole.ok() && skimmed.ok()) << whole.error << skimmed.error;
    auto& finding = skimmed.document["findings"][0];
    EXPECT_EQ(finding["history"], nlohmann::ordered_json::array());
    EXPECT_EQ(finding["forward"]["stack"], nlohmann::ordered_json::array());
    finding["history"] = whole.document["findings"][0]["history"];
    finding["forward"]["stack"] = whole.document["findings"][0]["forward"]["stack"];
    EXPECT_EQ(skimmed.document, whole.document);
    EXPECT_EQ(whole.document, nlohmann::ordered_json::parse(report));
    EXPECT_FALSE(parse_report("r", with_members(R"("findings":[{"history":[1,]}])"), Skim::Lists).ok())
        << "still checked";
}

TEST(JsonReader, WithoutValuesAFindingIsStillKnown) {
    const std::string report = with_members(
        R"("artifacts":[["a"]],"findings":[{"id":"F1","fingerprint":"f","step":3,"outputs":[{"nan":1}],"stack":[1],
           "location":{"file":"a.py","line":3},"sent":[{"group":"0"}],"collectives":{"0":7},"category":{"id":"N1"}}])");
    const ReadResult read = parse_report("r", report, Skim::Values);
    ASSERT_TRUE(read.ok()) << read.error;
    nlohmann::ordered_json expected = nlohmann::ordered_json::parse(report);
    auto& finding = expected["findings"][0];
    finding["outputs"] = finding["stack"] = nlohmann::ordered_json::array();
    finding["category"] = nlohmann::ordered_json::object();
    EXPECT_EQ(read.document, expected);
}

TEST(JsonReader, WhatHasNoMarkOfAReportIsForeign) {
    for (const char* text : {"[]", "{}", "{\"schema\":1}", "lr: 0.1", "{\"a\":1}\n{\"a\":2}"}) {
        EXPECT_TRUE(parse_report("r", text).foreign) << text;
    }
    for (const char* text : {"", "{\"schema\":\"numsan.report/1\"", "{\"schema\":\"numsan.report/2\"}"}) {
        const ReadResult result = parse_report("r", text);
        EXPECT_FALSE(result.ok() || result.foreign) << text;
    }
    EXPECT_FALSE(parse_report("r", with_members("\"x\":1")).foreign);
}

TEST(JsonReader, ReasonsHoldNoControlCharacter) {
    for (const char* text : {"\x7f\x1b", "{\"schema\":\"\x7f\"}"}) {
        const std::string error = parse_report("r", text).error;
        EXPECT_EQ(error.find_first_of("\x7f\x1b\n"), std::string::npos) << error;
    }
}

TEST(JsonReader, DamagedFindingsDoNotBreakTheRenderer) {
    const auto document = nlohmann::ordered_json::parse(
        R"({"code":1,"location":{"line":"x"},"outputs":[3,{"shape":[null]}],"contaminated":[{}],"help":[1],"escape":[]})");
    EXPECT_FALSE(render_finding(document, TextStyle{}).empty());
}

}  // namespace
}  // namespace numsan
