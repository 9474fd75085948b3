// The report of a process: the order of findings, what is counted rather than repeated, whose names are asked for.
#include "host/session/reporter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <memory>
#include <string>

#include "host/process/process_identity.h"
#include "host/report/json_writer.h"
#include "nlohmann/json.hpp"
#include "tests/host/verdict/fake_stacks.h"
#include "tests/host/verdict/made_up.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

using nlohmann::json;

class ReporterTest : public ::testing::Test {
  protected:
    ReporterTest() {
        options.report = folder.file("report.json");
        options.log = folder.file("log.txt");
        for (StackId id = 1; id < 10; ++id) {
            stacks.stacks[id] = {{"/home/me/model.py", "forward", static_cast<int>(id), nullptr, false}};
        }
        reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), RunSummary());
    }
    static EscapedBirth escaped(BirthId id, int64_t seq, StackId stack, Severity severity = Severity::Error) {
        EscapedBirth made;
        made.birth.id = id;
        made.birth.op = "aten::log";
        made.birth.kind = kNaN;
        made.birth.mechanism = Mechanism::DOM;
        made.birth.seq = OpSeq{seq};
        made.birth.stack = stack;
        made.into = EscapeInto::Loss;
        made.severity = severity;
        made.place = "aten::log|" + std::to_string(stack);
        return made;
    }
    void add(std::vector<EscapedBirth> births, std::vector<Contamination> contaminated = {}) {
        Outcome outcome;
        outcome.escaped = std::move(births);
        outcome.contaminated = std::move(contaminated);
        reporter->add(outcome, stacks.live, RunSummary());
    }
    json findings() const { return json::parse(testing::file_text(options.report))["findings"]; }

    testing::ScratchFolder folder;
    Options options;
    FakeStacks stacks;
    OpenRanges ranges;
    std::unique_ptr<Reporter> reporter;
};

TEST_F(ReporterTest, OrderIsThatOfBirthNotOfEscape) {
    add({escaped(3, 30, 3)});
    add({escaped(1, 10, 1), escaped(2, 20, 2)});
    const json found = findings();
    ASSERT_EQ(found.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(found[i]["seq"], 10 * (i + 1));
        EXPECT_EQ(found[i]["id"], "F" + std::to_string(i + 1));
        EXPECT_EQ(found[i]["location"]["line"], i + 1);
    }
}

TEST_F(ReporterTest, OnlyTheFirstIsCalledTheFirst) {
    add({escaped(3, 30, 3)});
    add({escaped(1, 10, 1)});
    const json found = findings();
    ASSERT_EQ(found.size(), 2u);
    int first = 0;
    for (const json& finding : found) first += finding["title"].get<std::string>().rfind("first ", 0) == 0 ? 1 : 0;
    EXPECT_EQ(first, 1);
    EXPECT_EQ(found[0]["title"].get<std::string>().rfind("first ", 0), 0u)
        << "in the order of birth it is the one born first: " << found[0]["title"];
}

TEST_F(ReporterTest, SamePlaceAgainIsCounted) {
    add({escaped(1, 10, 1)});
    add({escaped(2, 20, 1)});
    add({escaped(3, 30, 2)});
    const json found = findings();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0]["count"], 2);
    EXPECT_EQ(found[1]["count"], 1);
}

TEST_F(ReporterTest, WhatMayRepeatAFindingIsNone) {
    int weight = 0;
    stacks.live.tensors[&weight] = {"head.weight", LiveNames::TensorName::Role::Parameter};
    add({escaped(1, 10, 1)});
    EscapedBirth back = escaped(2, 20, 2);
    back.birth.repeats = 1;
    add({back}, {{2, EscapeInto::Parameter, &weight, 4}});
    const json found = findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["count"], 1);
    EXPECT_EQ(found[0]["contaminated"][0]["name"], "head.weight") << "the finding has reached it, by a way round";
    EXPECT_EQ(reporter->finding_of(2)->seq, OpSeq{10});
    for (BirthId id = 3; id < 70000; ++id) {
        back.birth.id = id;
        add({back});
    }
    EXPECT_EQ(findings().size(), 1u) << "however often";
}

TEST_F(ReporterTest, WhatRepeatsAMilderFindingOrNoneIsAFinding) {
    EscapedBirth back = escaped(2, 20, 2);
    back.birth.repeats = 1;
    add({escaped(1, 10, 1, Severity::Warning)});
    add({back});
    EXPECT_EQ(findings().size(), 2u) << "an error is not hidden by a warning";
    options.allow = folder.file("allow");
    std::ofstream(options.allow) << "op:aten::log\n";
    reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), RunSummary());
    back.birth.op = "external";
    add({escaped(1, 10, 1)});
    add({back});
    ASSERT_EQ(findings().size(), 1u) << "what a rule suppresses hides nothing else";
    EXPECT_EQ(findings()[0]["op"], "external");
}

TEST_F(ReporterTest, SamePlaceInGeneratedCodeIsCountedWhereRulesAreAskedAndNobodyAskedForNames) {
    options.allow = folder.file("allow");
    std::ofstream(options.allow) << "op:aten::exp\n";
    reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), RunSummary());
    stacks.stacks[1].insert(stacks.stacks[1].begin(), {"<eval_with_key>.1", "forward", 7, nullptr, false});
    stacks.live.traced[{"<eval_with_key>.1", 7}] = {{"/home/me/model.py", "forward", 5, nullptr, false, true}};
    add({escaped(1, 10, 1)});
    stacks.live = {};
    add({escaped(2, 20, 1)});
    const json found = findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["location"]["line"], 5);
    EXPECT_EQ(found[0]["count"], 2);
}

TEST_F(ReporterTest, WhereARuleNamesModulesTheReporterAsksForNamesOfGradientsToo) {
    options.allow = folder.file("allow");
    std::ofstream(options.allow) << "op:aten::exp module:head.*\n";
    reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), RunSummary());
    int gradient = 0;
    stacks.live.tensors[&gradient] = {"head.weight", LiveNames::TensorName::Role::Gradient};
    Outcome outcome;
    outcome.escaped = {escaped(1, 10, 1)};
    outcome.escaped[0].into = EscapeInto::Gradient;
    outcome.escaped[0].impl = &gradient;
    TensorReader reader;
    reader.gradient_of = [](const void*) -> const void* { return nullptr; };  // as the names have it already
    reporter->add(outcome, {}, RunSummary(), reader);
    EXPECT_EQ(findings()[0]["escape"]["name"], "head.weight");
}

TEST_F(ReporterTest, ContaminatedTensorsGoToTheirFindingWhereverItIsSorted) {
    int weight = 0, bias = 0;
    stacks.live.tensors[&weight] = {"head.weight", LiveNames::TensorName::Role::Parameter};
    stacks.live.tensors[&bias] = {"head.bias", LiveNames::TensorName::Role::Parameter};
    add({escaped(2, 20, 2)});
    add({escaped(1, 10, 1)}, {{2, EscapeInto::Parameter, &weight, 4},
                              {2, EscapeInto::Parameter, &weight, 5},
                              {1, EscapeInto::Parameter, &bias, 6},
                              {9, EscapeInto::Parameter, &bias, 6}});
    const json found = findings();
    ASSERT_EQ(found.size(), 2u);
    ASSERT_EQ(found[1]["contaminated"].size(), 1u) << "told once";
    EXPECT_EQ(found[1]["contaminated"][0]["name"], "head.weight");
    EXPECT_EQ(found[1]["contaminated"][0]["since_step"], 4);
    ASSERT_EQ(found[0]["contaminated"].size(), 1u);
    EXPECT_EQ(found[0]["contaminated"][0]["name"], "head.bias");
}

/// A finding is told at once, and what it does to parameters shows only after that.
TEST_F(ReporterTest, CheckpointsThatAreNotSafeAreToldAtTheEnd) {
    const std::string help = "help: checkpoints written after step 6 are not safe to resume from\n";
    add({escaped(1, 10, 1)});
    stacks.live.tensors[&options] = {"weight", LiveNames::TensorName::Role::Parameter};
    Contamination bad;
    bad.birth = 1;
    bad.kind = EscapeInto::Gradient;
    bad.impl = &options;
    bad.since_step = 3;
    add({}, {bad});  // the next backward makes it anew
    bad.kind = EscapeInto::Parameter;
    bad.since_step = 7;
    add({}, {bad});
    EXPECT_EQ(testing::file_text(options.log).find(help), std::string::npos);
    reporter->finish(RunSummary());
    const std::string log = testing::file_text(options.log);
    EXPECT_NE(log.find(help + "numsan: 1 finding"), std::string::npos) << log;
}

TEST_F(ReporterTest, CheckpointsThatWereToldOfWithTheFindingAreNotToldAgain) {
    stacks.live.tensors[&options] = {"weight", LiveNames::TensorName::Role::Parameter};
    Contamination bad;
    bad.birth = 1;
    bad.kind = EscapeInto::Parameter;
    bad.impl = &options;
    bad.since_step = 7;
    add({escaped(1, 10, 1)}, {bad});
    reporter->finish(RunSummary());
    const std::string log = testing::file_text(options.log);
    const size_t first = log.find("checkpoints written after step 6");
    ASSERT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find("checkpoints", first + 1), std::string::npos) << log;
}

TEST_F(ReporterTest, KnowsHowBadItIs) {
    EXPECT_TRUE(reporter->empty());
    add({escaped(1, 10, 1, Severity::Warning)});
    EXPECT_FALSE(reporter->empty());
    EXPECT_TRUE(reporter->has(Severity::Warning));
    EXPECT_FALSE(reporter->has(Severity::Error));
}

TEST_F(ReporterTest, KeepsAsManyAsWasAsked) {
    options.max_findings = 2;
    for (StackId i = 1; i <= 4; ++i) add({escaped(i, i, i)});
    EXPECT_EQ(findings().size(), 2u);
    reporter->finish(RunSummary());
    EXPECT_NE(testing::file_text(options.log).find("2 further findings were counted and not kept (max_findings=2)"),
              std::string::npos);
}

TEST_F(ReporterTest, SaysWhatWasCountedAtTheHighestVerbosity) {
    RunSummary counts;
    counts.births = 1234;
    counts.escaped = 1;
    counts.absorbed = 1233;
    counts.bytes = 5000000;
    counts.wall_s = 0.5;
    const std::string line =
        "numsan: debug: 1 234 bad values were born, 1 escaped, 1 233 stayed masked; 5 000 000 bytes were read in a run "
        "of 0.5 seconds\n";
    options.verbosity = 2;
    reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), RunSummary());
    reporter->finish(counts);
    EXPECT_EQ(testing::file_text(options.log).find("debug"), std::string::npos);
    options.verbosity = 3;
    reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), RunSummary());
    reporter->finish(counts);
    EXPECT_NE(testing::file_text(options.log).find(line), std::string::npos) << testing::file_text(options.log);
}

TEST_F(ReporterTest, TheRankOfAProcessGroupIsThatOfTheFindingsToo) {
    EXPECT_FALSE(reporter->knows_rank());
    add({escaped(1, 10, 1)});
    reporter->use(ProcessRank{3, 8});
    EXPECT_TRUE(reporter->knows_rank());
    add({escaped(2, 20, 2)});
    for (const json& finding : findings()) EXPECT_EQ(finding["rank"], 3);
    reporter->use(ProcessRank{4, 8});
    reporter->finish(RunSummary());
    for (const json& finding : findings()) EXPECT_EQ(finding["rank"], 3) << "the first answer holds";
}

TEST_F(ReporterTest, ChildStartsWithNothing) {
    add({escaped(1, 10, 1)});
    reporter->begin_child();
    EXPECT_TRUE(reporter->empty());
    add({escaped(1, 10, 1)});
    ASSERT_EQ(findings().size(), 1u);
    EXPECT_EQ(findings()[0]["count"], 1) << "the parent's count is the parent's";
}

/// What lies where a process's report would be, when the process begins and has a finding.
class SharedFolder : public ReporterTest {
  protected:
    void run(const char* pattern, const std::string& left_by) {
        options.report = folder.file(pattern);
        RunSummary other;
        other.pid = getpid();
        other.process = left_by;
        const std::string path = expand_path(options.report, {getpid(), {}, {}, {}});
        Report left;
        left.run = other;
        std::ofstream(path) << to_json(left);
        before = testing::file_text(path);
        RunSummary mine;
        mine.pid = getpid();
        mine.process = process_identity();
        mine.started = "2026-11-22T19:00:00Z";
        reporter = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), mine);
        reporter->begin(mine);
        begun = testing::file_text(path);
        add({escaped(1, 10, 1)});
        reporter->finish(mine);
        after = testing::file_text(path);
        aside = testing::file_text(folder.file("r-" + std::to_string(getpid()) + "-20261122T190000Z.json"));
    }
    std::string before, begun, after, aside;
    const std::string elsewhere = "0f0f0f0f-0000-4000-8000-000000000000/4026531836/77";
};

TEST_F(SharedFolder, ReportOfAnotherContainerStaysAsItIs) {
    run("r-%p.json", elsewhere);
    EXPECT_EQ(begun, before);
    EXPECT_EQ(after, before);
    EXPECT_EQ(json::parse(aside)["findings"].size(), 1u);
    EXPECT_NE(testing::file_text(options.log).find("r-" + std::to_string(getpid()) + "-20261122T190000Z.json"),
              std::string::npos)
        << "where the report is, is said";
}

TEST_F(SharedFolder, ReportOfNobodyKnowsWhomStaysAsItIs) {
    run("r-%p.json", "");
    EXPECT_EQ(after, before);
    EXPECT_FALSE(aside.empty());
}

TEST_F(SharedFolder, ReportOfAProcessThatHasEndedIsReplaced) {
    const std::string mine = process_identity();
    run("r-%p.json", mine.substr(0, mine.rfind('/') + 1) + "1");
    EXPECT_NE(begun, before);
    EXPECT_EQ(json::parse(after)["findings"].size(), 1u);
    EXPECT_TRUE(aside.empty());
}

TEST_F(SharedFolder, OwnReportFromBeforeAnotherProgramWasRunIsReplaced) {
    run("r-%p.json", process_identity());
    EXPECT_NE(begun, before);
    EXPECT_TRUE(aside.empty());
}

/// A launcher and its ranks that were given one path.
class SharedPath : public ReporterTest {
  protected:
    std::unique_ptr<Reporter> begin(const char* identity, int64_t pid) {
        RunSummary run;
        run.pid = pid;
        run.process = identity;
        auto made = std::make_unique<Reporter>(options, stacks, ranges, PlaceFinder("/env/torch"), run);
        made->begin(run);
        return made;
    }
    void find(Reporter& process, int line) {
        Outcome outcome;
        outcome.escaped = {escaped(line, 10 * line, static_cast<StackId>(line))};
        process.add(outcome, stacks.live, RunSummary());
    }
    json report(const std::string& name) { return json::parse(testing::file_text(folder.file(name))); }
};

TEST_F(SharedPath, WhoFoundNothingLeavesWhatAnotherFound) {
    const auto launcher = begin("boot/1/100", 100), rank = begin("boot/1/101", 101);
    find(*rank, 3);
    rank->finish(RunSummary());
    launcher->finish(RunSummary());
    EXPECT_EQ(report("report.json")["run"]["pid"], 101);
    EXPECT_EQ(report("report.json")["findings"].size(), 1u);
}

TEST_F(SharedPath, WhoFoundSomethingElseStepsAside) {
    const auto first = begin("boot/1/100", 100), second = begin("boot/1/101", 101);
    find(*first, 3);
    find(*second, 4);
    second->finish(RunSummary());
    find(*first, 5);
    first->finish(RunSummary());
    EXPECT_EQ(report("report.json")["findings"].size(), 2u);
    EXPECT_EQ(report("report-101.json")["findings"].size(), 1u);
    EXPECT_NE(testing::file_text(options.log).find("report-101.json"), std::string::npos) << "where it is, is said";
}

TEST_F(SharedPath, WhatAnEarlierRunFoundIsReplaced) {
    begin("boot/1/100", 100)->finish(RunSummary());
    find(*begin("boot/1/100", 100), 3);
    timespec hour_ago[2] = {{time(nullptr) - 3600, 0}, {time(nullptr) - 3600, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, options.report.c_str(), hour_ago, 0), 0);
    begin("boot/1/101", 101)->finish(RunSummary());
    EXPECT_EQ(report("report.json")["findings"].size(), 0u);
}

TEST_F(SharedFolder, PathThatTheUserChoseIsKept) {
    run("chosen.json", elsewhere);
    EXPECT_EQ(begun, before) << "what another process found is worth more than that this one began";
    EXPECT_EQ(json::parse(after)["findings"].size(), 1u);
}

}  // namespace
}  // namespace numsan
