// Findings and reports for tests, complete and valid.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "host/finding/run_summary.h"

namespace numsan::testing {

using namespace ::testing;  // where sources are compiled together, this namespace would hide googletest's

inline TensorFact build_tensor(const std::string& name, Health health, std::vector<int64_t> shape = {64, 64}) {
    TensorFact tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.health = health;
    return tensor;
}

inline Health healthy(double low, double high, int64_t zeros = 0, int64_t elements = 4096) {
    Health health{};
    health.elements = elements;
    health.finite = elements;
    health.zero = zeros;
    health.min = low;
    health.max = high;
    health.absmax = high;
    health.absmin = low > 0 ? low : 0.0041;
    health.first_bad = -1;
    return health;
}

inline Health with_infinities(int64_t count, int64_t first) {
    Health health = healthy(0.00012, 812.5);
    health.pos_inf = count;
    health.finite -= count;
    health.first_bad = first;
    health.first_bad_bits = 0x7f800000;
    health.first_bad_kind = kPosInf;
    return health;
}

/// A backward finding: sqrt at zero.
inline Finding build_finding() {
    Finding finding;
    finding.id = "F1";
    finding.fingerprint = "3f1c2a9be07d";
    finding.mechanism = Mechanism::SING;
    finding.kind = FindingKind::Inf;
    finding.first = true;
    finding.happened = "the backward of aten::sqrt divided by zero in 3 of 4096 values";
    finding.op = "aten::div";
    finding.phase = Phase::Backward;
    finding.step = 412;
    finding.seq = OpSeq{91234};
    finding.location = Place{"/home/user/job/losses.py", 31, "distance", "return (a - b).pow(2).sum(-1).sqrt()"};
    finding.backward_location = Place{"/home/user/job/train.py", 88, "main", "loss.backward()"};
    finding.module = "model.head";
    finding.stack = {{"python", "main", "/home/user/job/train.py", 88}};
    finding.forward = ForwardOp{"aten::sqrt", "SqrtBackward0", finding.location, "model.head", {}};
    finding.outputs = {build_tensor("output[0]", with_infinities(3, 2 * 64 + 17))};
    finding.inputs = {build_tensor("input[0]", healthy(0.00024, 0.5)), build_tensor("input[1]", healthy(0, 22.1, 3))};
    finding.category = {"N3", 0.91};
    finding.alternatives = {{"N2", 0.06}};
    finding.evidence = {"every input of SqrtBackward0 was finite", "the divisor 2*sqrt(x) has 3 zeros"};
    finding.help = {HelpLine{"keep the argument away from zero: `(d2 + eps).sqrt()`, with eps inside the root", "eps"}};
    finding.escape = {EscapeInto::Gradient, "model.head.weight", 412, OpSeq{91260}};
    finding.contaminated = {{EscapeInto::Parameter, "model.head.weight", 412}};
    return finding;
}

inline Report build_report() {
    Report report;
    report.run.version = "0.1.0";
    report.run.run_id = "7b1e0c1e-9d0a-4f5c-8a53-1f6f1c0e7a11";
    report.run.argv = {"python", "train.py"};
    report.run.cwd = "/home/user/job";
    report.run.pid = 4242;
    report.run.host = "node7";
    report.run.started = "2026-11-21T09:00:00Z";
    report.run.options = {{"tier", "full"}};
    report.run.steps = 500;
    report.run.ops = 91234;
    report.run.scanned = 60211;
    report.run.skipped = {{"view", 30110}, {"integer", 913}};
    report.run.births = 413;
    report.run.escaped = 1;
    report.run.absorbed = 412;
    report.findings = {build_finding()};
    return report;
}

/// A folder that goes away with this object.
class ScratchFolder {
  public:
    ScratchFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "numsan-test-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~ScratchFolder() { std::filesystem::remove_all(path_); }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    std::string file(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

inline std::string file_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

}  // namespace numsan::testing
