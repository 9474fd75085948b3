// AllowList: what a rule matches, what a bad line is told, what an unreadable file is.
#include "host/finding/allow_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/finding/tables.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using ::testing::SizeIs;

Finding plain_finding() {
    Finding finding;
    finding.mechanism = Mechanism::DOM;
    finding.op = "aten::log";
    finding.location = Place{"/home/user/job/losses.py", 31, "loss", "return x.log()"};
    finding.backward_location = Place{"/home/user/job/train.py", 88, "main", "loss.backward()"};
    finding.module = "model.layers.3.attn";
    return finding;
}

AllowList good_list(const std::string& text) {
    std::vector<std::string> complaints;
    AllowList list = AllowList::parse(text, "allow.txt", complaints);
    EXPECT_THAT(complaints, SizeIs(0));
    return list;
}

bool matches(const std::string& rule, const Finding& finding = plain_finding()) {
    return good_list(rule).match(finding, "/start") != nullptr;
}

std::vector<std::string> complaints_of(const std::string& text) {
    std::vector<std::string> complaints;
    AllowList::parse(text, "allow.txt", complaints);
    return complaints;
}

std::optional<Place> place_at(const std::string& file, const std::string& line) {
    if (file.empty()) return std::nullopt;
    return Place{file, std::stoi(line), "", {}};
}

std::optional<std::string> unless_empty(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

/// Those of allow_cases.def, by their names.
std::map<std::string, Finding> findings_of_cases() {
    std::map<std::string, Finding> known;
    const auto add = [&](const char* name, const char* op, const char* file, const char* line, const char* module,
                         std::string_view code, const char* category, const char* forward_op, const char* forward_file,
                         const char* forward_line, const char* forward_module) {
        Finding finding;
        for (const MechanismInfo& row : kMechanisms) {
            if (code == row.code) finding.mechanism = row.value;
        }
        finding.op = op;
        finding.location = place_at(file, line);
        finding.module = unless_empty(module);
        finding.category.id = *find_category(category);
        if (*forward_op != '\0')
            finding.forward =
                ForwardOp{forward_op, "", place_at(forward_file, forward_line), unless_empty(forward_module), {}};
        known.emplace(name, std::move(finding));
    };
#define NUMSAN_ALLOW_FINDING(...) add(__VA_ARGS__);
#define NUMSAN_ALLOW_CASE(...)
#include "tests/host/finding/allow_cases.def"
#undef NUMSAN_ALLOW_FINDING
#undef NUMSAN_ALLOW_CASE
    return known;
}

TEST(AllowList, CasesThatThePackageOfPythonIsAskedToo) {
    const std::map<std::string, Finding> known = findings_of_cases();
    const auto expect = [&](const char* rule, const char* finding, const std::string& wanted) {
        std::vector<std::string> complaints;
        const AllowList list = AllowList::parse(rule, "allow.txt", complaints);
        const bool matched = list.match(known.at(finding), "/start") != nullptr;
        EXPECT_EQ(!complaints.empty() ? "refused" : matched ? "matches" : "differs", wanted) << rule;
    };
#define NUMSAN_ALLOW_FINDING(...)
#define NUMSAN_ALLOW_CASE(...) expect(__VA_ARGS__);
#include "tests/host/finding/allow_cases.def"
#undef NUMSAN_ALLOW_FINDING
#undef NUMSAN_ALLOW_CASE
}

TEST(AllowList, MatchesOps) {
    EXPECT_TRUE(matches("op:aten::log"));
    EXPECT_TRUE(matches("op:aten::*"));
    EXPECT_FALSE(matches("op:aten::lo"));
    EXPECT_FALSE(matches("op:log"));
    Finding finding = plain_finding();
    finding.op = "aten::div.Tensor";
    EXPECT_TRUE(matches("op:aten::div", finding));
    EXPECT_TRUE(matches("op:aten::div.Tensor", finding));
    EXPECT_FALSE(matches("op:aten::div.Scalar", finding));
}

TEST(AllowList, MatchesTheForwardOfABackwardFinding) {
    Finding finding = plain_finding();
    finding.op = "aten::div";
    finding.forward = ForwardOp{"aten::sqrt", "SqrtBackward0", Place{"/lib/norm.py", 7, "norm", {}}, "model.norm", {}};
    EXPECT_TRUE(matches("op:aten::sqrt", finding));
    EXPECT_TRUE(matches("op:aten::div", finding));
    EXPECT_TRUE(matches("file:norm.py:7", finding));
    EXPECT_TRUE(matches("module:model.norm", finding));
}

TEST(AllowList, MatchesFiles) {
    EXPECT_TRUE(matches("file:losses.py"));
    EXPECT_TRUE(matches("file:losses.py:31"));
    EXPECT_TRUE(matches("file:./losses.py:31"));
    EXPECT_TRUE(matches("file:job/losses.py"));
    EXPECT_TRUE(matches("file:/home/user/job/losses.py"));
    EXPECT_TRUE(matches("file:*/losses.py"));
    EXPECT_TRUE(matches("file:user/*.py:31"));
    EXPECT_FALSE(matches("file:losses.py:32"));
    EXPECT_FALSE(matches("file:osses.py")) << "part of a component is not the component";
    EXPECT_FALSE(matches("file:/job/losses.py"));
    EXPECT_FALSE(matches("file:train.py")) << "where backward() was called is not where the value was made";
    Finding finding = plain_finding();
    finding.user_location = Place{"main.py", 3, "main", {}};
    EXPECT_TRUE(matches("file:main.py:3", finding));
    EXPECT_TRUE(matches("file:/start/main.py", finding)) << "relative to where the program started";
    finding.location.reset();
    finding.user_location.reset();
    EXPECT_FALSE(matches("file:*", finding));
}

TEST(AllowList, MatchesModulesCodesAndCategories) {
    EXPECT_TRUE(matches("module:model.layers.*.attn"));
    EXPECT_FALSE(matches("module:layers.3.attn"));
    EXPECT_FALSE(matches("module:model.layers.*.mlp"));
    EXPECT_TRUE(matches("code:NS101"));
    EXPECT_FALSE(matches("code:NS104"));
    EXPECT_TRUE(matches("category:U"));
    EXPECT_FALSE(matches("category:N8"));
    Finding finding = plain_finding();
    finding.module.reset();
    EXPECT_FALSE(matches("module:*", finding));
}

TEST(AllowList, EveryFieldOfALineMustMatch) {
    EXPECT_TRUE(matches("op:aten::log file:losses.py\tcode:NS101"));
    EXPECT_FALSE(matches("op:aten::log file:metrics.py"));
    EXPECT_FALSE(matches("op:aten::div file:losses.py"));
}

TEST(AllowList, ReadsLinesCommentsAndBlanks) {
    const AllowList list = good_list(
        "\xef\xbb\xbf# heading\r\n\r\n  op:aten::div   file:metrics.py # why\r\nop:aten::log#1\n"
        "op:aten::log\ncode:NS101");
    EXPECT_THAT(list.rules(),
                ElementsAre("op:aten::div file:metrics.py", "op:aten::log#1", "op:aten::log", "code:NS101"));
    const std::string* rule = list.match(plain_finding(), "");
    ASSERT_NE(rule, nullptr);
    EXPECT_EQ(*rule, "op:aten::log") << "the first that matches";
    EXPECT_EQ(good_list("").match(plain_finding(), ""), nullptr) << "no rule is not a rule that matches everything";
    EXPECT_EQ(good_list("# op:aten::log").match(plain_finding(), ""), nullptr);
}

TEST(AllowList, SaysWhetherModulesAreAskedFor) {
    EXPECT_FALSE(good_list("op:aten::log\n").names_modules());
    EXPECT_TRUE(good_list("code:NS104\nop:aten::log module:model.*\n").names_modules());
}

TEST(AllowList, TellsBadLinesAndKeepsTheRest) {
    std::vector<std::string> complaints;
    const AllowList list = AllowList::parse("modul:model.*\nop:aten::log\n", "allow.txt", complaints);
    EXPECT_THAT(list.rules(), ElementsAre("op:aten::log"));
    EXPECT_THAT(
        complaints,
        ElementsAre("allow.txt:1: field 'modul': expected one of op, file, module, code, category, each followed by "
                    "':' and a value; did you mean 'module:'?; the line is ignored"));
}

TEST(AllowList, TellsWhatWasExpected) {
    EXPECT_THAT(complaints_of("\naten::log"),
                ElementsAre(AllOf(HasSubstr("allow.txt:2:"), HasSubstr("did you mean 'op:'?"))));
    EXPECT_THAT(complaints_of("op:"), ElementsAre(HasSubstr("field 'op': expected a value after the ':'")));
    EXPECT_THAT(complaints_of("losses.py"), ElementsAre(HasSubstr("field 'losses.py': expected one of op, file")));
    EXPECT_THAT(complaints_of("code:NS10"),
                ElementsAre(AllOf(HasSubstr("'NS10'"), HasSubstr("did you mean 'NS101'?"))));
    EXPECT_THAT(complaints_of("category:M8"), ElementsAre(AllOf(HasSubstr("field 'category'"), HasSubstr("'N8'"))));
    for (const char* line :
         {"file:a.py:x", "file:a.py:0", "file:a.py:-3", "file:a.py:", "file::3", "file:a.py:99999999999"}) {
        EXPECT_THAT(complaints_of(line), ElementsAre(HasSubstr("expected PATH or PATH:LINE"))) << line;
    }
    EXPECT_THAT(complaints_of("op:aten::log file:a.py:x"), SizeIs(1))
        << "half a rule would suppress more than was meant";
    EXPECT_THAT(complaints_of("\x1b[2J:x"), ElementsAre(HasSubstr("'?[2J'"))) << "safe on a terminal";
}

TEST(AllowList, DoesNotFloodTheLog) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "nonsense\n";
    const std::vector<std::string> complaints = complaints_of(text);
    ASSERT_THAT(complaints, SizeIs(21));
    EXPECT_EQ(complaints.back(), "allow.txt: 980 further bad lines are ignored");
}

TEST(AllowList, ReadsAFile) {
    const ScratchFolder scratch;
    std::ofstream(scratch.file("allow.txt")) << "op:aten::log\nop\n";
    std::vector<std::string> complaints;
    EXPECT_THAT(AllowList::read(scratch.file("allow.txt"), complaints).rules(), ElementsAre("op:aten::log"));
    EXPECT_THAT(complaints, ElementsAre(HasSubstr(scratch.file("allow.txt") + ":2: field 'op': expected")));
}

TEST(AllowList, SaysWhyAFileWasNotRead) {
    const ScratchFolder scratch;
    const auto complaints_about = [](const std::string& path) {
        std::vector<std::string> complaints;
        EXPECT_THAT(AllowList::read(path, complaints).rules(), SizeIs(0));
        return complaints;
    };
    EXPECT_THAT(complaints_about(""), SizeIs(0));
    EXPECT_THAT(complaints_about("/none.txt"),
                ElementsAre("allow: '/none.txt' was not read: No such file or directory; no "
                            "finding is suppressed"));
    EXPECT_THAT(complaints_about("/tmp"), ElementsAre(HasSubstr("is not a regular file")));
    ASSERT_EQ(mkfifo(scratch.file("pipe").c_str(), 0600), 0);
    EXPECT_THAT(complaints_about(scratch.file("pipe")), ElementsAre(HasSubstr("is not a regular file")));
    std::ofstream(scratch.file("large")) << std::string((1 << 20) + 1, '#');
    EXPECT_THAT(complaints_about(scratch.file("large")), ElementsAre(HasSubstr("larger than 1 MiB")));
}

TEST(GlobMatches, StarsStandForAnything) {
    EXPECT_TRUE(glob_matches("", ""));
    EXPECT_TRUE(glob_matches("*", ""));
    EXPECT_TRUE(glob_matches("a**c", "ac"));
    EXPECT_TRUE(glob_matches("*ab*ab", "abxabab"));
    EXPECT_FALSE(glob_matches("a*b", "abc"));
    EXPECT_FALSE(glob_matches("", "a"));
    EXPECT_FALSE(glob_matches("a?c", "abc")) << "only the star is special";
    EXPECT_FALSE(glob_matches(std::string(60, '*') + "b", std::string(100000, 'a')));
}

}  // namespace
}  // namespace numsan
