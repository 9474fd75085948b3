// Findings over many nights.
#include "host/changes/finding_history.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace numsan {
namespace {

namespace fs = std::filesystem;
using fields::Json;

Json finding(const std::string& code_line, int step, double absmax = 8) {
    return {{"fingerprint", code_line},
            {"code", "NS104"},
            {"severity", "warning"},
            {"op", "aten::mul"},
            {"phase", "forward"},
            {"step", step},
            {"outputs", {{{"dtype", "float16"}, {"absmax", absmax}}}},
            {"location", {{"file", "/job/a.py"}, {"line", 7}, {"function", "f"}, {"code", code_line}}}};
}

Night night_of(const std::vector<Json>& findings) {
    Night night;
    night.known = std::make_unique<KnownFindings>();
    const Json document = {{"run", Json::object()}, {"verdict", "findings"}, {"findings", findings}};
    const std::string path = "r";
    night.known->add({0, path, path, document});
    return night;
}

std::string seen(const FindingHistory& history) {
    std::string out;
    for (const KnownFinding* one : history.nights)
        out += one == nullptr ? "-" : std::to_string(static_cast<int>(one->first_step));
    return out;
}

std::vector<Night> nights_of(const std::vector<std::vector<Json>>& findings) {
    std::vector<Night> nights;
    for (const auto& one : findings) nights.push_back(night_of(one));
    return nights;
}

TEST(FindingHistory, SinceWhenAndUntilWhen) {
    const std::vector<Night> nights = nights_of(
        {{finding("a", 9), finding("b", 1)}, {finding("a", 7)}, {finding("a", 5), finding("b", 2), finding("c", 3)}});
    const std::vector<FindingHistory> histories = finding_histories(nights);
    ASSERT_EQ(histories.size(), 3u);
    EXPECT_EQ(seen(histories[0]), "975");
    EXPECT_EQ(seen(histories[1]), "1-2");
    EXPECT_EQ(seen(histories[2]), "--3");
    EXPECT_STREQ(to_string(state_of(histories[0])), "present");
    EXPECT_STREQ(to_string(state_of(histories[1])), "back");
    EXPECT_STREQ(to_string(state_of(histories[2])), "new");
    EXPECT_EQ(histories[1].first(), 0u);
    EXPECT_EQ(histories[1].last(), 2u);
    EXPECT_EQ(histories[1].sightings(), 2u);
}

TEST(FindingHistory, WhatIsGoneComesLast) {
    const std::vector<Night> nights = nights_of({{finding("a", 9)}, {finding("b", 1)}, {finding("b", 1)}});
    const std::vector<FindingHistory> histories = finding_histories(nights);
    ASSERT_EQ(histories.size(), 2u);
    EXPECT_EQ(seen(histories[0]), "-11");
    EXPECT_EQ(seen(histories[1]), "9--");
    EXPECT_STREQ(to_string(state_of(histories[1])), "gone");
}

TEST(FindingHistory, IsTheSameWhereDiffSaysSo) {
    Json moved = finding("a", 4);
    moved["fingerprint"] = "another";
    moved["location"]["file"] = "/job/b.py";
    EXPECT_EQ(finding_histories(nights_of({{finding("a", 9)}, {moved}})).size(), 1u);
    moved["location"]["function"] = "g";
    EXPECT_EQ(finding_histories(nights_of({{finding("a", 9)}, {moved}})).size(), 2u);
}

TEST(FindingHistory, HeadroomIsOfTheLargestResult) {
    const std::vector<Night> nights = nights_of({{finding("a", 1, 32752)}});
    const std::vector<FindingHistory> histories = finding_histories(nights);
    const auto room = headroom_of(histories[0].latest());
    ASSERT_TRUE(room.has_value());
    EXPECT_EQ(room->largest, 65504);
    EXPECT_DOUBLE_EQ(room->absmax / room->largest, 0.5);
    Json nothing = finding("a", 1);
    nothing["outputs"][0]["absmax"] = nullptr;
    EXPECT_FALSE(headroom_of(finding_histories(nights_of({{nothing}}))[0].latest()).has_value());
}

TEST(FindingHistory, NightsAreFilesAndFoldersInTheOrderOfTheirTime) {
    const fs::path folder = fs::path(testing::TempDir()) / ("numsan_nights_" + std::to_string(getpid()));
    fs::create_directories(folder / "b");
    fs::create_directories(folder / "empty");
    const auto write = [&](const char* name, const std::string& started) {
        Json report = {{"schema", "numsan.report/1"}, {"verdict", "clean"}, {"findings", Json::array()}};
        for (const char* key : {"tool", "run", "coverage", "cost", "noted"}) report[key] = Json::object();
        report["run"]["started"] = started;
        std::ofstream(folder / name) << report.dump();
    };
    write("z.json", "2026-11-01T00:00:00Z");
    write("b/rank0.json", "2026-11-02T00:00:09Z");
    write("b/rank1.json", "2026-11-02T00:00:00Z");
    write("a.json", "2026-11-03T00:00:00Z");
    std::ofstream(folder / "foreign.json") << "[]";
    const Nights read = read_nights(folder.string());
    EXPECT_TRUE(read.read.errors.empty());
    EXPECT_EQ(read.read.skipped.size(), 2u) << "the empty folder and the foreign file";
    ASSERT_EQ(read.nights.size(), 3u);
    EXPECT_TRUE(read.nights[0].path.ends_with("z.json"));
    EXPECT_EQ(read.nights[1].started, "2026-11-02T00:00:00Z");
    EXPECT_EQ(read.nights[1].known->runs().size(), 2u);
    EXPECT_TRUE(read.nights[2].path.ends_with("a.json"));
    fs::remove_all(folder);
    EXPECT_EQ(read_nights(folder.string()).read.errors.size(), 1u);
}

TEST(FindingHistory, NightsWithoutATimeAreInTheOrderOfTheirNames) {
    const fs::path folder = fs::path(testing::TempDir()) / ("numsan_timeless_nights_" + std::to_string(getpid()));
    Json report = {{"schema", "numsan.report/1"}, {"verdict", "clean"}, {"findings", Json::array()}};
    for (const char* key : {"tool", "run", "coverage", "cost", "noted"}) report[key] = Json::object();
    for (const char* name : {"night-10", "night-2", "night-1"}) {
        fs::create_directories(folder / name);
        std::ofstream(folder / name / "report.json") << report.dump();
    }
    const Nights read = read_nights(folder.string());
    ASSERT_EQ(read.nights.size(), 3u);
    EXPECT_TRUE(read.nights[0].path.ends_with("night-1"));
    EXPECT_TRUE(read.nights[1].path.ends_with("night-2")) << "numbers count, as in the reports of one night";
    EXPECT_TRUE(read.nights[2].path.ends_with("night-10"));
    fs::remove_all(folder);
}

}  // namespace
}  // namespace numsan
