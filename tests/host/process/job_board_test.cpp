// What ranks of a job leave for rank 0, and what that says: the store is a list here.
#include "host/process/job_board.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace numsan {
namespace {

using nlohmann::json;

std::vector<std::string> g_texts;
bool g_refuses;
int g_asked;

const JobStore kStore = {[](const std::string& text, const JobMember& self, void (*)()) {
                             EXPECT_EQ(self.world_size, 8);
                             ++g_asked;
                             if (!g_refuses) g_texts.push_back(text);
                             return !g_refuses;
                         },
                         [](const JobMember& self, void (*)()) {
                             EXPECT_EQ(self.rank, 0);
                             ++g_asked;
                             return g_texts;
                         }};

/// `begun`: collectives of the group of all ranks before it.
Finding error_in_step(int64_t step, uint64_t begun = 7) {
    Finding finding;
    finding.mechanism = Mechanism::DIV0;
    finding.happened = "`aten::div` divided by zero in 1 of 1 value";
    finding.op = "aten::div";
    finding.step = step;
    finding.seq = OpSeq{100 * step};
    finding.location = Place{"/work/losses.py", 31, "criterion", "loss / n", {}};
    finding.collectives = std::map<std::string, uint64_t>{{"world", begun}};
    return finding;
}

Finding received_in_step(int64_t step) {
    Finding finding = error_in_step(step);
    finding.mechanism = Mechanism::DATA;
    finding.received.emplace();
    return finding;
}

/// One process of a job.
struct Rank {
    explicit Rank(int rank, const std::string& host = "node1", int world_size = 8) {
        run.launch.rank = rank;
        run.launch.world_size = world_size;
        run.host = host;
        run.cwd = "/work";
        run.steps = 50;
        run.groups.push_back({"world", "default_pg", rank, world_size, "0-7", 12});
        board.use(kStore, nullptr);
    }
    void found(const Finding& finding) {
        board.found(finding, run, "numsan-" + std::to_string(*run.launch.rank) + ".json");
    }
    std::string attend(bool last = false) { return board.attend(run, last); }
    /// As it was last taken.
    json document() {
        const std::string fresh = board.take_document(run);
        if (!fresh.empty()) taken = fresh;
        return json::parse(taken);
    }

    RunSummary run;
    std::string taken;
    JobBoard board;
};

class JobBoardTest : public testing::Test {
  protected:
    void SetUp() override {
        g_texts.clear();
        g_refuses = false;
        g_asked = 0;
    }
    Rank zero{0}, third{3};
};

TEST_F(JobBoardTest, RankZeroNamesTheRankThatWasFirst) {
    third.found(error_in_step(2));
    EXPECT_FALSE(third.board.is_due(false)) << "it is left at once: the others receive the value next";
    zero.found(received_in_step(2));
    EXPECT_TRUE(zero.board.is_due(false));
    EXPECT_EQ(zero.attend(),
              "rank 3 of 8 was first: error[NS103]: NaN: `aten::div` divided by zero in 1 of 1 value, at "
              "losses.py:31 in criterion, step 2; its report is numsan-3.json");
    EXPECT_EQ(zero.attend(true), "") << "once";
    const json document = zero.document();
    EXPECT_EQ(document["schema"], "numsan.job/1");
    EXPECT_EQ(document["world_size"], 8);
    ASSERT_EQ(document["first_errors"].size(), 1u);
    EXPECT_EQ(document["first_errors"][0]["rank"], 3);
    EXPECT_EQ(document["first_errors"][0]["location"]["line"], 31);
    EXPECT_EQ(third.board.take_document(third.run), "") << "the document is rank 0's";
}

TEST_F(JobBoardTest, NothingIsAskedWhereNothingIsFound) {
    Finding warning = error_in_step(1);
    warning.severity = Severity::Warning;
    zero.found(warning);
    third.found(warning);
    EXPECT_FALSE(zero.board.is_due(false));
    EXPECT_FALSE(third.board.is_due(false));
    EXPECT_EQ(g_asked, 0);
}

TEST_F(JobBoardTest, WhatWasReceivedIsNotLeft) {
    third.found(received_in_step(2));
    EXPECT_FALSE(third.board.is_due(false));
    EXPECT_EQ(g_asked, 0);
    Finding sum = received_in_step(2);
    sum.mechanism = Mechanism::OVF;  // of the collective itself
    third.found(sum);
    EXPECT_EQ(g_texts.size(), 1u);
    third.found(error_in_step(3));
    EXPECT_EQ(g_texts.size(), 1u) << "the first alone";
}

TEST_F(JobBoardTest, AnotherHostAndRanksOfOneStepAreNamed) {
    Rank fifth(5, "node2");
    fifth.found(error_in_step(2));
    third.found(error_in_step(7));
    zero.found(received_in_step(2));
    EXPECT_EQ(zero.attend().substr(0, 42), "rank 5 of 8 was first, on node2: error[NS1");
    EXPECT_EQ(zero.document()["first_errors"][0]["rank"], 5);
    Rank again(0);
    Rank sixth(6);
    sixth.found(error_in_step(2));
    again.found(received_in_step(2));
    EXPECT_EQ(again.attend().substr(0, 65), "ranks 5-6 of 8 were first: rank 5 on node2 has error[NS103]: NaN:");
}

TEST_F(JobBoardTest, OfItsOwnErrorRankZeroSaysNothing) {
    zero.found(error_in_step(1));
    third.found(error_in_step(2));
    EXPECT_EQ(zero.attend(), "");
    EXPECT_EQ(zero.document()["first_errors"].size(), 2u);
    EXPECT_EQ(zero.document()["first_errors"][0]["rank"], 0);
    Rank again(0);
    again.found(error_in_step(2));
    EXPECT_EQ(again.attend().substr(0, 45), "ranks 0, 3 of 8 were first: rank 3 has error[");
}

TEST_F(JobBoardTest, FewerCollectivesWereBeforeTheFirstWhateverTheStep) {
    Rank evaluator(5);
    evaluator.found(error_in_step(0, 90));  // it counts no steps
    third.found(error_in_step(40, 80));
    zero.found(received_in_step(40));
    EXPECT_EQ(zero.attend().substr(0, 24), "rank 3 of 8 was first: e");
}

TEST_F(JobBoardTest, RanksWithoutAGroupInCommonAreNotOrdered) {
    Rank elsewhere(5);
    elsewhere.run.groups[0].name = "other";
    Finding error = error_in_step(9);
    error.collectives = std::map<std::string, uint64_t>{{"other", 3}};
    elsewhere.found(error);
    third.found(error_in_step(2));
    zero.found(received_in_step(2));
    EXPECT_EQ(zero.attend().substr(0, 37), "ranks 3, 5 of 8 were first: rank 3 ha");
}

TEST_F(JobBoardTest, ALateRankIsAwaitedForAFewSteps) {
    zero.found(received_in_step(2));
    EXPECT_EQ(zero.attend(), "");
    EXPECT_TRUE(zero.board.is_due(false));
    third.found(error_in_step(2));
    EXPECT_NE(zero.attend(), "");

    g_texts.clear();
    Rank other(0);
    other.found(received_in_step(2));
    for (int step = 0; step < 3; ++step) {
        EXPECT_TRUE(other.board.is_due(false));
        EXPECT_EQ(other.attend(), "");
    }
    EXPECT_FALSE(other.board.is_due(false)) << "no store is asked for ever";
    EXPECT_EQ(other.board.take_document(other.run), "");
    Rank last(4);
    last.found(error_in_step(2));
    EXPECT_NE(other.attend(true), "") << "but at the end once more";
}

TEST_F(JobBoardTest, WhatWasEarlierAndCameLaterIsSaidToo) {
    third.found(error_in_step(5, 9));
    zero.found(received_in_step(5));
    EXPECT_EQ(zero.attend().substr(0, 22), "rank 3 of 8 was first:");
    Rank slow(6);
    slow.found(error_in_step(5, 8));
    EXPECT_EQ(zero.attend().substr(0, 22), "rank 6 of 8 was first:");
    EXPECT_EQ(zero.attend(), "");
    const json document = zero.document();
    EXPECT_EQ(document["first_errors"][0]["rank"], 6);
    EXPECT_EQ(document["first_errors"][1]["rank"], 3);
    EXPECT_EQ(zero.board.take_document(zero.run), "") << "as it was";
    zero.found(error_in_step(4, 7));
    EXPECT_EQ(zero.attend(true), "rank 0 of 8 was first after all, with a finding of its own");
    EXPECT_EQ(zero.attend(true), "");
    EXPECT_EQ(zero.document()["first_errors"][0]["rank"], 0);
}

TEST_F(JobBoardTest, WhatWasBornBeforeAndIsFoundLaterIsLeftToo) {
    third.found(error_in_step(5, 9));
    third.found(error_in_step(6, 10));
    EXPECT_EQ(g_texts.size(), 1u);
    third.found(error_in_step(4, 8));
    EXPECT_EQ(g_texts.size(), 2u);
    third.found(error_in_step(3, 7));
    EXPECT_EQ(g_texts.size(), 2u) << "but not without end";
    zero.found(received_in_step(5));
    EXPECT_NE(zero.attend().find(", step 4; its report"), std::string::npos);
}

TEST_F(JobBoardTest, ARankThatCountsNoStepsIsNotBeforeOthers) {
    Rank evaluator(5);
    evaluator.run.steps = 0;
    evaluator.found(error_in_step(0));
    third.found(error_in_step(40));
    zero.found(received_in_step(40));
    EXPECT_EQ(zero.attend().substr(0, 29), "ranks 3, 5 of 8 were first: r");
}

TEST_F(JobBoardTest, WhatWasLeftBeforeTheJobStartedIsOfRanksBefore) {
    third.found(error_in_step(2));
    zero.run.started = "2999-01-01T00:00:00Z";
    zero.found(received_in_step(2));
    EXPECT_EQ(zero.attend(), "");
    EXPECT_EQ(zero.board.take_document(zero.run), "");
}

TEST_F(JobBoardTest, AStoreIsAskedSoManyTimesInARun) {
    for (int step = 0; step < 100; ++step) {
        zero.found(received_in_step(step));
        zero.attend(true);
    }
    EXPECT_EQ(g_asked, 16);
}

TEST_F(JobBoardTest, WhatCouldNotBeLeftIsTriedAgain) {
    g_refuses = true;
    third.found(error_in_step(2));
    EXPECT_TRUE(third.board.is_due(false));
    g_refuses = false;
    EXPECT_EQ(third.attend(), "");
    EXPECT_FALSE(third.board.is_due(false));
    EXPECT_EQ(g_texts.size(), 1u);

    g_refuses = true;
    g_asked = 0;
    Rank fourth(4);
    fourth.found(error_in_step(2));
    for (int step = 3; step < 13; ++step) {
        fourth.found(error_in_step(step));
        fourth.attend();
    }
    EXPECT_FALSE(fourth.board.is_due(false));
    EXPECT_EQ(g_asked, 3);
}

TEST_F(JobBoardTest, WhatIsNoRanksTextIsLeftOut) {
    g_texts = {"",
               "{",
               "null",
               "[1]",
               R"({"schema": "numsan.rank-error/1"})",
               R"({"schema": "other", "rank": 2})",
               R"({"schema": "numsan.rank-error/1", "rank": 2, "code": 3, "title": "x"})",
               R"({"schema": "numsan.rank-error/1", "rank": 0, "code": "NS103", "title": "x"})",
               R"({"schema": "numsan.rank-error/1", "rank": 2, "severity": "error", "code": "NS103", "title": "a\nb",
                   "location": [], "step": "x"})"};
    zero.found(received_in_step(0));
    EXPECT_EQ(zero.attend(), "rank 2 of 8 was first: error[NS103]: a?b, no source line is known, step 0");
    EXPECT_EQ(zero.document()["first_errors"].size(), 1u);
}

TEST_F(JobBoardTest, OneProcessIsNoJob) {
    Rank alone(0, "node1", 1);
    alone.found(error_in_step(1));
    EXPECT_FALSE(alone.board.is_due(false));
    Rank unknown(1);
    unknown.run.launch.rank.reset();
    unknown.board.found(error_in_step(1), unknown.run, "");
    JobBoard without_store;
    without_store.found(error_in_step(1), zero.run, "");
    EXPECT_FALSE(without_store.is_due(false));
    EXPECT_EQ(g_asked, 0);
}

TEST_F(JobBoardTest, AForkedChildMayBeARankAndThatOfARankIsNone) {
    third.found(error_in_step(1));
    third.board.begin_child(false);
    third.found(error_in_step(2));
    EXPECT_EQ(g_texts.size(), 2u);
    third.board.begin_child(true);
    third.found(error_in_step(3));
    EXPECT_EQ(g_texts.size(), 2u);
    zero.found(received_in_step(1));
    zero.board.begin_child(true);
    EXPECT_FALSE(zero.board.is_due(true));
    zero.found(received_in_step(1));
    EXPECT_EQ(zero.attend(true), "");
}

}  // namespace
}  // namespace numsan
