// Whole texts against golden files; NUMSAN_UPDATE_GOLDEN=1 rewrites them.
#include "host/report/text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "host/explain/explain.h"
#include "host/finding/tables.h"
#include "host/report/json_writer.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

using testing::build_finding;
using testing::build_report;

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(NUMSAN_SOURCE_DIR) + "/tests/host/report/golden/" + name;
    if (std::getenv("NUMSAN_UPDATE_GOLDEN")) std::ofstream(path) << text;
    EXPECT_EQ(text, testing::file_text(path)) << name;
}

TextStyle plain() { return {false, 0, "/home/user/job"}; }

TEST(Text, BackwardFinding) {
    expect_golden("backward.txt", render_finding(build_finding(), plain()) + "\n" +
                                      render_summary(build_report(), plain(), "numsan-4242.json"));
}

TEST(Text, NarrowAndColoured) { expect_golden("narrow_color.txt", render_finding(build_finding(), {true, 60, ""})); }

TEST(Text, StoppedBeforeTheEscapeIsKnown) { expect_golden("stopped.txt", render_birth(build_finding(), plain())); }

TEST(Text, WithoutALineAndWithValuesGone) {
    Finding finding = build_finding();
    finding.location.reset();
    finding.module.reset();
    finding.forward.reset();
    finding.inputs[0].health = Health{};
    finding.severity = Severity::Warning;
    finding.escape = {EscapeInto::Host, std::nullopt, 412, OpSeq{91260}};
    finding.count = 1234567;
    expect_golden("no_line.txt", render_finding(finding, plain()));
}

TEST(Text, NamesTheDumpAndTheCommandThatRunsIt) {
    Finding finding = build_finding();
    EXPECT_EQ(render_finding(finding, plain()).find("dump:"), std::string::npos);
    finding.dump = "d/numsan-7-1.safetensors";
    EXPECT_NE(render_finding(finding, plain())
                  .find("   = dump:     d/numsan-7-1.safetensors; numsan replay d/numsan-7-1.safetensors\n"),
              std::string::npos)
        << render_finding(finding, plain());
}

TEST(Text, NamesTheLineThatWroteTheTensorLast) {
    Finding finding = build_finding();
    finding.written_location = Place{"/home/user/job/train.py", 12, "step", "h = torch.tanh(x)"};
    EXPECT_NE(render_finding(finding, plain()).find("note: last written by train.py:12 `h = torch.tanh(x)`\n"),
              std::string::npos)
        << render_finding(finding, plain());
}

TEST(Text, NamesTheRangesOfTheProgramOutermostFirst) {
    Finding finding = build_finding();
    EXPECT_EQ(render_finding(finding, plain()).find("inside:"), std::string::npos);
    finding.forward.reset();
    finding.stack.push_back({kRangeFrame, "NCCL:ncclAllReduce", std::nullopt, std::nullopt});
    finding.stack.push_back({kRangeFrame, "train", std::nullopt, std::nullopt});
    EXPECT_NE(render_finding(finding, plain()).find("\n   = inside:   train > NCCL:ncclAllReduce\n"), std::string::npos)
        << render_finding(finding, plain());
    finding.forward.emplace().stack = {{kRangeFrame, "decoder/attn", std::nullopt, std::nullopt}};
    EXPECT_NE(render_finding(finding, plain())
                  .find("\n   = inside:   decoder/attn; its backward is inside train > NCCL:ncclAllReduce\n"),
              std::string::npos)
        << render_finding(finding, plain());
    finding.forward->stack.clear();
    EXPECT_NE(
        render_finding(finding, plain()).find("\n   = inside:   its backward is inside train > NCCL:ncclAllReduce\n"),
        std::string::npos)
        << render_finding(finding, plain());
    finding.location.reset();  // the stack is shown
    EXPECT_EQ(render_finding(finding, plain()).find("in train\n"), std::string::npos);
}

TEST(Text, NamesTheKernelsOfADevice) {
    Finding finding = build_finding();
    finding.launches = {{"partial_sums(float*)", "cuLaunchKernel", {40, 2, 1}, {128, 1, 1}, 0, 0, 16}};
    EXPECT_NE(
        render_finding(finding, plain())
            .find("\n   = kernel:   partial_sums(float*), grid 40x2x1, block 128x1x1, stream 0x0, correlation 16\n"),
        std::string::npos)
        << render_finding(finding, plain());
    Finding compiled = build_finding();
    compiled.stack.push_back({kKernelFrame, "cpp_fused_log_0", "/cache/a.py", 12});
    compiled.stack.push_back({kKernelFrame, "cpp_fused_add_log_1", "/cache/a.py", 60});
    EXPECT_NE(
        render_finding(compiled, plain())
            .find("\n   = kernel:   cpp_fused_log_0 at /cache/a.py:12 or cpp_fused_add_log_1 at /cache/a.py:60\n"),
        std::string::npos)
        << render_finding(compiled, plain());
    finding.launches.push_back(
        {"sum_of_parts(float*)", "cuLaunchKernelEx", {1, 1, 1}, {32, 1, 1}, 49152, 0x55ab, 17, 1234});
    EXPECT_NE(render_finding(finding, plain())
                  .find("\n   = kernel:   sum_of_parts(float*), launch 1234, grid 1x1x1, block 32x1x1, 49 152 bytes of "
                        "shared memory, "
                        "stream 0x55ab, correlation 17; the last that the operator launched\n"),
              std::string::npos)
        << render_finding(finding, plain());
}

TEST(Text, LinesThatLieInNoFile) {
    Finding finding = build_finding();
    finding.location->file = "/tmp/ipykernel_1/2.py";
    finding.location->cell = 7;
    const std::string cell = render_finding(finding, plain());
    EXPECT_NE(cell.find("  --> cell In[7]:31 in distance"), std::string::npos) << cell;
    EXPECT_EQ(cell.find("source:"), std::string::npos) << cell;
    finding.location = Place{"<string>", 31, "<module>", {}};
    const std::string none = render_finding(finding, plain());
    EXPECT_NE(none.find("   = source:   <string> lies in no file, and Python keeps no text of it\n"), std::string::npos)
        << none;
    finding.location = Place{"/opt/sim", 0, "main", {}};  // of a binary without debug information
    const std::string binary = render_finding(finding, plain());
    EXPECT_NE(binary.find("  --> /opt/sim in main "), std::string::npos) << binary;
}

TEST(Text, FiniteValuesCloseToTheLargest) {
    Finding finding = build_finding();
    finding.kind = FindingKind::Overflow;
    finding.severity = Severity::Warning;
    finding.mechanism = Mechanism::OVF;
    finding.happened = "`aten::mm` made values close to the largest float16";
    finding.outputs[0].health.pos_inf = finding.outputs[0].health.nan = 0;
    finding.outputs[0].health.first_bad = -1;
    finding.escape = {EscapeInto::Output, std::nullopt, 412, OpSeq{91260}};
    finding.contaminated.clear();
    expect_golden("near_overflow.txt", render_finding(finding, plain()));
}

TEST(Text, WhatBecameOfAValueThatEscapedNowhere) {
    Finding finding = build_finding();
    finding.severity = Severity::Info;
    finding.contaminated.clear();
    std::string all;
    for (const Fate fate :
         {Fate::Unread, Fate::ReadLast, Fate::Joined, Fate::NoFloats, Fate::Finite, Fate::Masked, Fate::Overwritten}) {
        LastUse last{fate, "aten::where", Place{"/home/user/job/loss.py", 21, "loss", std::nullopt}};
        if (fate == Fate::Unread) last = {};
        finding.escape = {EscapeInto::Output, std::nullopt, 412, OpSeq{91260}, last};
        const std::string text = render_finding(finding, plain());
        const size_t row = text.find("   = escaped:");
        all +=
            (all.empty() ? text.substr(0, text.find('\n') + 1) : "") + text.substr(row, text.find('\n', row) + 1 - row);
    }
    finding.escape.last = LastUse{Fate::Masked, "aten::where", std::nullopt};
    const std::string text = render_finding(finding, plain());
    EXPECT_NE(text.find("nowhere: masked away by `aten::where`\n"), std::string::npos) << text;
    expect_golden("absorbed.txt", all);
}

TEST(Text, IncompleteSummary) {
    Report report = build_report();
    report.findings.clear();
    report.run.dropped = 3;
    report.run.blind_spots = {"compiled kernels on the CPU"};
    report.run.suppressed = {{"op:aten::log", 0}, {"category:N8", 2}};
    expect_golden("incomplete.txt", render_summary(report, plain()));
}

TEST(Text, EveryIntegerOfADocumentIsShownWhole) {
    auto document = finding_document(build_finding());
    document["step"] = UINT64_MAX;
    document["seq"] = INT64_MIN;
    document["rank"] = UINT64_MAX;
    document["location"]["line"] = uint64_t{1} << 63;
    document["outputs"][0]["nan"] = UINT64_MAX;
    document["outputs"][0]["shape"][0] = UINT64_MAX;
    const std::string text = render_finding(document, plain());
    for (const char* shown :
         {"nan 18 446 744 073 709 551 615 ", "step 18 446 744 073 709 551 615,", "op -9 223 372 036 854 775 808 ",
          "rank 18446744073709551615", ":9223372036854775808", "[18446744073709551615"}) {
        EXPECT_NE(text.find(shown), std::string::npos) << shown << " in\n" << text;
    }
}

TEST(Text, OneLongNameDoesNotWidenEveryRow) {
    auto document = finding_document(build_finding());
    const auto tensor = document["inputs"][0];
    for (int i = 0; i < 1000; ++i) document["inputs"].push_back(tensor);
    const std::string name(100'000, 'n');
    const size_t before = render_finding(document, plain()).size();
    document["inputs"][0]["name"] = name;
    const std::string text = render_finding(document, plain());
    EXPECT_NE(text.find(name), std::string::npos) << "nothing is cut";
    EXPECT_LT(text.size(), before + name.size() + 1000 * 150);
}

TEST(Text, Figures) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(-1234567), "-1 234 567");
    EXPECT_EQ(grouped(INT64_MIN), "-9 223 372 036 854 775 808");
    EXPECT_EQ(grouped(UINT64_MAX), "18 446 744 073 709 551 615");
    EXPECT_EQ(value_text(0.00024), "2.4e-04");
    EXPECT_EQ(value_text(1e38), "1.0e+38");
    EXPECT_EQ(value_text(-812.5), "-812.5");
}

TEST(Explain, EveryMechanismAndCategoryHasAPage) {
    for (const MechanismInfo& row : kMechanisms)
        EXPECT_NE(explain_word(row.code).text.find("healthy"), std::string::npos) << row.id;
    for (const Category& row : categories())
        EXPECT_NE(explain_word(row.slug).text.find("healthy"), std::string::npos) << row.id;
    EXPECT_EQ(explain_word("unsafe-gradiant").nearest, "unsafe-gradient");
}

TEST(Explain, PagesAreHundredColumnsWide) {
    for (const Category& row : categories()) {
        std::istringstream page(explain_word(row.id).text);
        for (std::string line; std::getline(page, line);) EXPECT_LE(line.size(), 100u) << row.id << ": " << line;
    }
    const std::string text = explain_word("N3").text;
    EXPECT_NE(text.find("where() with a poisoned\n    branch"), std::string::npos) << text.substr(0, 300);
}

}  // namespace
}  // namespace numsan
