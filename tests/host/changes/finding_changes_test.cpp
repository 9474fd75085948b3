#include "host/changes/finding_changes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace numsan {
namespace {

using fields::Json;

/// A finding whose fingerprint says nothing of the other's.
Json finding(const std::string& fingerprint, const std::string& file, const std::string& function,
             const std::string& module, const std::string& code = "return x.log()") {
    return {{"fingerprint", fingerprint},
            {"code", "NS101"},
            {"severity", "error"},
            {"op", "aten::log"},
            {"phase", "forward"},
            {"module", module},
            {"location", {{"file", file}, {"line", 7}, {"function", function}, {"code", code}}}};
}

std::vector<std::string> changes(const std::vector<Json>& before, const std::vector<Json>& after) {
    KnownFindings sides[2];
    const std::vector<Json>* lists[] = {&before, &after};
    for (size_t i = 0; i < 2; ++i) {
        const Json document = {{"run", Json::object()}, {"findings", *lists[i]}};
        const std::string path = "r";
        sides[i].add({0, path, path, document});
    }
    std::vector<std::string> out;
    for (const ChangedFinding& one : finding_changes(sides[0], sides[1])) out.emplace_back(to_string(one.change));
    return out;
}

using Words = std::vector<std::string>;

TEST(FindingChanges, OneOfFileFunctionAndModuleMayChange) {
    const Json base = finding("1", "a.py", "f", "m");
    EXPECT_EQ(changes({base}, {finding("2", "b.py", "f", "m")}), Words{"moved"});
    EXPECT_EQ(changes({base}, {finding("2", "a.py", "g", "m")}), Words{"moved"});
    EXPECT_EQ(changes({base}, {finding("2", "a.py", "f", "n")}), Words{"moved"});
    EXPECT_EQ(changes({base}, {finding("2", "b.py", "g", "m")}), (Words{"appeared", "vanished"}));
    EXPECT_EQ(changes({base}, {finding("2", "b.py", "f", "n")}), (Words{"appeared", "vanished"}));
}

TEST(FindingChanges, AnotherLineOrOperatorIsAnotherFinding) {
    const Json base = finding("1", "a.py", "f", "m");
    EXPECT_EQ(changes({base}, {finding("2", "a.py", "f", "m", "return y.log()")}), (Words{"appeared", "vanished"}));
    Json other = finding("2", "a.py", "f", "m");
    other["op"] = "aten::sqrt";
    EXPECT_EQ(changes({base}, {other}), (Words{"appeared", "vanished"}));
    const Json unread = finding("1", "a.cpp", "f", "m", "");
    EXPECT_EQ(changes({unread}, {finding("2", "a.cpp", "f", "m", "")}), (Words{"appeared", "vanished"}));
}

TEST(FindingChanges, AFindingIsTakenOnce) {
    EXPECT_EQ(
        changes({finding("1", "a.py", "f", "m")}, {finding("2", "b.py", "f", "m"), finding("3", "c.py", "f", "m")}),
        (Words{"appeared", "moved"}));
    EXPECT_EQ(
        changes({finding("1", "a.py", "f", "m")}, {finding("1", "a.py", "f", "m"), finding("3", "c.py", "f", "m")}),
        (Words{"appeared", "unchanged"}))
        << "the fingerprint goes first";
}

TEST(FindingChanges, DivergenceAndOverflowAreOneByNameToo) {
    Json before = finding("1", "a.py", "f", "m");
    Json after = finding("2", "b.py", "f", "m");
    before["code"] = "NS104";
    after["code"] = "NS109";
    EXPECT_EQ(changes({before}, {after}), Words{"moved"});
}

TEST(FindingChanges, NewsAreWhatAppearedOrBecameWorse) {
    EXPECT_TRUE(any_news({{Change::Appeared, nullptr, nullptr}}));
    EXPECT_TRUE(any_news({{Change::MoreSevere, nullptr, nullptr}}));
    EXPECT_FALSE(any_news({{Change::Moved, nullptr, nullptr},
                           {Change::LessSevere, nullptr, nullptr},
                           {Change::Vanished, nullptr, nullptr},
                           {Change::Unchanged, nullptr, nullptr}}));
}

}  // namespace
}  // namespace numsan
