// What a session tells of itself: coverage that adds up, and a report from the start.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "host/process/process_identity.h"
#include "tests/host/session/played.h"

namespace numsan {
namespace {

/// Every op is scanned, or left out for one reason.
void expect_that_it_adds_up(const json& coverage) {
    int64_t ops = coverage["scanned"];
    for (const auto& [why, count] : coverage["skipped"].items()) ops += count.get<int64_t>();
    EXPECT_EQ(ops, coverage["ops"]) << coverage;
    EXPECT_FALSE(coverage["skipped"].contains("not judged yet")) << coverage;
}

TEST(SessionEnd, CountsWhatCouldNotBeLookedAtByReason) {
    Played& r = Played::make();
    const auto unseen = [&](const char* why) {
        r.session->skipped(why);
        r.op(kMul, {}, {});
    };
    const std::string sparse = "sparse";  // equal texts are one reason, wherever they lie
    unseen("sparse");
    unseen(sparse.c_str());
    unseen("meta");
    static const char* const kMany[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    for (const char* why : kMany) unseen(why);
    EXPECT_EQ(r.session->finish(0), 0);
    const json coverage = r.read()["coverage"];
    const json& skipped = coverage["skipped"];
    EXPECT_EQ(skipped["sparse"], 2);
    EXPECT_EQ(skipped["meta"], 1);
    EXPECT_EQ(skipped["i"], 1);
    EXPECT_EQ(skipped["other"], 2) << "none is lost when there are more reasons than room";
    expect_that_it_adds_up(coverage);
    r.remove();
}

TEST(SessionEnd, EveryOpCountsOnce) {
    Played& r = Played::make();
    const OpInfo empty{"aten::empty", "", OpClass::Allocation, false, 11};
    const OpInfo reduce{"c10d::allreduce_", "", OpClass::Collective, true, 12};
    MadeUp x{1}, y{2}, index{3};
    TensorView integers = index.returned();
    integers.flags &= ~uint32_t(kScannable);
    r.op(kMul, {x.view()}, {y.returned(), x.returned()});  // two outputs are one op
    r.op(kMul, {x.view()}, {y.returned(), integers});      // with an index beside the values
    r.op(kMul, {x.view()}, {integers, integers});
    r.op(empty, {}, {y.returned()});
    r.op(reduce, {y.view()}, {y.written()});
    r.op(kMul, {x.view()}, {});
    r.session->skipped("sparse");
    r.session->skipped("sparse");  // of the same op
    r.op(kMul, {x.view()}, {y.returned()});
    EXPECT_EQ(r.session->finish(0), 0);
    const json coverage = r.read()["coverage"];
    EXPECT_EQ(coverage["ops"], 7);
    EXPECT_EQ(coverage["scanned"], 2);
    EXPECT_EQ(coverage["bytes"], 16) << "what was read of an op that is not counted as scanned was read";
    EXPECT_EQ(coverage["skipped"],
              (json{{"integer", 1}, {"allocation", 1}, {"collective", 1}, {"without output", 1}, {"sparse", 1}}));
    r.remove();
}

TEST(SessionEnd, ABadOutputOfATierThatReadsLittleCountsOnce) {
    Played& r = Played::make("tier=sentinel");
    MadeUp x{-1}, y{kNan};
    std::vector<float> large(TierPolicy::kTinyBytes, 1);
    MadeUp unread(large);
    r.op(kLog, {x.view()}, {y.returned(), unread.returned()});
    EXPECT_EQ(r.session->finish(0), 0);
    expect_that_it_adds_up(r.read()["coverage"]);
    EXPECT_EQ(r.read()["coverage"]["ops"], 1);
    EXPECT_EQ(r.read()["run"]["tier"], "sentinel");
    r.remove();
}

TEST(SessionEnd, BeginsWithAReportThatSaysItHasNotEnded) {
    Played& r = Played::make();
    r.session->begin_report();
    const json early = r.read();
    ASSERT_TRUE(early.is_object());
    EXPECT_EQ(early["verdict"], "incomplete");
    EXPECT_EQ(early["run"]["ended"], nullptr);
    EXPECT_NE(early["coverage"]["blind_spots"].back().get<std::string>().find("had not ended"), std::string::npos);
    EXPECT_EQ(r.session->finish(0), 0);
    const json last = r.read();
    EXPECT_EQ(last["verdict"], "clean");
    EXPECT_EQ(last["coverage"]["blind_spots"].size(), 1u) << last["coverage"];
    EXPECT_EQ(last["run"]["tier"], "full");
    EXPECT_EQ(last["run"]["tiers"], (json{{"cpu", "full"}}));
    r.remove();
}

/// As a process that has nothing to say yet finds it.
std::string begun_over(const std::string& before) {
    Played& r = Played::make();
    std::ofstream(r.report) << before;
    r.session->begin_report();
    std::stringstream after;
    after << std::ifstream(r.report).rdbuf();
    r.remove();
    return after.str();
}

TEST(SessionEnd, BeginsOverWhatAnEndedProcessLeftOnly) {
    const pid_t ended = fork();
    if (ended == 0) _exit(0);
    waitpid(ended, nullptr, 0);
    const std::string mine = process_identity();
    const std::string place = mine.substr(0, mine.rfind('/') + 1);
    const auto of = [](pid_t pid, const std::string& process) {
        Played& r = Played::make();
        r.session->begin_report();
        json report = r.read();
        r.remove();
        report["run"]["pid"] = pid;
        report["run"]["process"] = process;
        report["run"]["id"] = "";
        report["run"]["started"] = "";
        report["cost"]["wall_s"] = 0;
        return report.dump();
    };
    EXPECT_NE(begun_over(of(ended, place + "7")), of(ended, place + "7")) << "a run of before";
    EXPECT_NE(begun_over(""), "") << "a name that was reserved";
    const std::string elsewhere = of(ended, "0f0f0f0f-0000-4000-8000-000000000000/4026531836/7");
    EXPECT_EQ(begun_over(elsewhere), elsewhere) << "a process that runs may have found something";
    EXPECT_EQ(begun_over("not a report"), "not a report");
}

TEST(SessionEnd, BeginsInSilenceWhereItCannotWrite) {
    Played& r = Played::make("report=/nonexistent/report.json");
    r.session->begin_report();
    EXPECT_EQ(r.session->finish(0), 0);
    Played& none = Played::make("report=none");
    none.session->begin_report();
    EXPECT_TRUE(none.read().is_null());
}

}  // namespace
}  // namespace numsan
