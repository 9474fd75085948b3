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
