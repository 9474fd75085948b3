#include "host/format/known_findings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace numsan {
namespace {

using fields::Json;

Json report_of(int rank, const std::vector<Json>& findings) {
    return {{"run", {{"rank", rank}, {"cwd", "/job"}, {"argv", {"python", "-W", "error", "/job/train.py", "--lr"}}}},
            {"verdict", findings.empty() ? "incomplete" : "findings"},
            {"findings", findings}};
}

Json finding_of(const std::string& fingerprint, const std::string& severity, int step) {
    return {{"fingerprint", fingerprint}, {"severity", severity}, {"step", step}, {"count", 2}};
}

void add(KnownFindings& known, size_t number, const Json& document) {
    const std::string path = "r" + std::to_string(number);
    known.add({number, path, path, document});
}

TEST(KnownFindings, OneFingerprintIsOneFindingWhicheverThreadReadIt) {
    KnownFindings one;
    KnownFindings other;
    add(one, 1, report_of(1, {finding_of("b", "warning", 7)}));
    add(one, 3, report_of(3, {}));
    add(other, 0, report_of(0, {finding_of("a", "error", 5), finding_of("b", "error", 9)}));
    add(other, 2, report_of(2, {finding_of("b", "info", 2)}));
    one.absorb(other);
    const auto findings = one.findings();
    ASSERT_EQ(findings.size(), 2u);
    const KnownFinding& b = *findings[1];
    EXPECT_EQ(b.place, FindingPlace(0, 1));
    EXPECT_EQ(b.document["step"], 9) << "as its first report has it";
    EXPECT_EQ(b.path, "r0");
    EXPECT_EQ(b.severity, "error");
    EXPECT_EQ(b.reports, 3u);
    EXPECT_EQ(b.first_step, 2);
    EXPECT_EQ(ranks_text(b.ranks), "ranks 0-2");
    EXPECT_EQ(one.runs().size(), 4u);
    EXPECT_EQ(one.incomplete_runs(), 1u);
}

TEST(KnownFindings, RanksAreRanges) {
    EXPECT_EQ(ranks_text({}), "");
    EXPECT_EQ(ranks_text({4}), "rank 4");
    EXPECT_EQ(ranks_text({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
}

TEST(KnownFindings, TheProgramsFileIsAsItWasGiven) {
    const auto file = [](const Json& argv) { return program_file({{"argv", argv}}); };
    EXPECT_EQ(file({"python", "-u", "src/train.py", "x"}), "src/train.py");
    EXPECT_EQ(file({"./bin/trainer", "a"}), "./bin/trainer");
    EXPECT_EQ(file({"python", "-m", "pkg.train"}), "");
    EXPECT_EQ(file({"python"}), "");
    EXPECT_EQ(file(Json::array()), "");
}

TEST(KnownFindings, AProgramIsWhatPythonRuns) {
    const auto program = [](const Json& argv) { return program_of({{"argv", argv}}); };
    EXPECT_EQ(program({"/usr/bin/python3", "-u", "-X", "dev", "/job/train.py", "x"}), "train.py");
    EXPECT_EQ(program({"python", "-m", "pkg.train"}), "-m pkg.train");
    EXPECT_EQ(program({"python", "-c", "import torch"}), "python -c");
    EXPECT_EQ(program({"/job/trainer", "a"}), "trainer");
    EXPECT_EQ(program(Json::array()), "unknown program");
    EXPECT_EQ(program("text"), "unknown program");
}

TEST(KnownFindings, APlaceIsRelativeToItsOwnRun) {
    const Json place = {{"file", "/job/a/b.py"}, {"line", 3}};
    EXPECT_EQ(shown_place(place, "/job"), "a/b.py:3");
    EXPECT_EQ(shown_place(place, "/jo"), "/job/a/b.py:3");
    EXPECT_EQ(shown_place(place, "/"), "/job/a/b.py:3");
    EXPECT_EQ(shown_place(nullptr, "/job"), "");
}

}  // namespace
}  // namespace numsan
