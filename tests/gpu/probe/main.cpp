// numsan_gpu_probe: facts of a GPU and of numsan's kernels on it, in one JSON. Needs the driver, and no torch.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <vector>

#include "host/base/version.h"
#include "tests/gpu/probe/subject.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kNoGpu = 77;

struct PhaseRow {
    const char* name;
    double weight;  ///< share of the run's time
    void (*run)(Phase&);
};
constexpr PhaseRow kPhases[] = {
    {"facts", 5, facts},        {"twins", 30, twins}, {"bandwidth", 30, bandwidth}, {"calls", 10, calls},
    {"launches", 10, launches}, {"graph", 10, graph}, {"latency", 10, latency},     {"worst", 15, worst},
};

struct Options {
    std::string out;
    std::vector<std::string> phases;
    int device = 0;
    double budget = 120;
    size_t max_bytes = size_t(1) << 30;
    uint64_t seed = 1;
};

std::string now() {
    const std::time_t time = std::time(nullptr);
    char text[64];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&time));
    return text;
}

bool is_chosen(const Options& options, const char* name) {
    return options.phases.empty() ||
           std::find(options.phases.begin(), options.phases.end(), name) != options.phases.end();
}

/// Runs one phase and reports it. True when it passed.
bool run_phase(const PhaseRow& row, Subject& subject, Report& report, Watchdog& watchdog, double seconds) {
    Phase phase{.subject = subject, .report = report};
    const Clock::time_point began = Clock::now();
    phase.end = began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const int run_out = Pause::run_out();
    report.begin(row.name);
    watchdog.arm(row.name, 2 * seconds + 3);
    Json failure;
    try {
        row.run(phase);
    } catch (const CallFailed& failed) {
        failure = {{"call", failed.call}, {"result", gpu().text_of(failed.result)}, {"code", int(failed.result)}};
        phase.line = failed.what();
    } catch (const std::exception& wrong) {
        failure = {{"what", wrong.what()}};
        phase.line = wrong.what();
    }
    const double taken = seconds_since(began);
    if (phase.cut_short) {
        phase.data["cut_short"] = true;
        phase.line += " (cut short)";
    }
    if (const int more = Pause::run_out() - run_out; more != 0) phase.data["pauses_run_out"] = more;  // host-bound
    const char* result = failure.is_null() ? "passed" : "failed";
    report.end(row.name, result, taken, phase.line, phase.data, failure);
    print_line(row.name, result, taken, phase.line);
    return failure.is_null();
}

/// Why nothing more can run in the context; empty while it lives.
std::string lost(Watchdog& watchdog, const char* phase) {
    watchdog.arm(phase, 10);
    const CUresult result = gpu().synchronize();
    watchdog.arm("", 0);
    return result == CUDA_SUCCESS ? "" : "the context is lost: cuCtxSynchronize: " + gpu().text_of(result);
}

int run(const Options& options, Subject& subject) {
    char name[256] = "";
    gpu().device_name(name, sizeof name, gpu().device);
    std::vector<std::string> names;
    double weights = 0;
    for (const PhaseRow& row : kPhases) {
        if (!is_chosen(options, row.name)) continue;
        names.push_back(row.name);
        weights += row.weight;
    }
    Json head{{"probe", 1},
              {"version", NUMSAN_VERSION},
              {"commit", NUMSAN_COMMIT},
              {"started", now()},
              {"device", name},
              {"ordinal", options.device},
              {"cuda_of_driver", subject.driver.version},
              {"max_bytes", options.max_bytes},
              {"budget_s", options.budget},
              {"seed", options.seed}};
    Report report(options.out, head, names);
    Watchdog watchdog(report);
    const Clock::time_point began = Clock::now();
    double share = 0;
    bool passed = true;
    std::string end;
    for (const PhaseRow& row : kPhases) {
        if (!is_chosen(options, row.name)) continue;
        share += row.weight / weights;  // what a phase leaves of its time is the next one's
        const double left = share * options.budget - seconds_since(began);
        if (!end.empty()) {
            report.end(row.name, "not run", 0, end, nullptr, {{"what", end}});
            print_line(row.name, "not run", 0, end);
            continue;
        }
        passed = run_phase(row, subject, report, watchdog, std::max(left, 0.1)) && passed;
        end = lost(watchdog, row.name);
        passed = passed && end.empty();
    }
    report.finish();
    return passed && report.written() ? 0 : 1;
}

int parse(int argc, char** argv, Options& options) {
    CLI::App app(
        "Facts of a GPU and of numsan's scan kernels on it, in one JSON file that is written as each phase ends.");
    std::string about = "some of";
    std::vector<std::string> known;
    for (const PhaseRow& row : kPhases) {
        about += std::string(known.empty() ? " " : ", ") + row.name;
        known.push_back(row.name);
    }
    app.add_option("--out", options.out, "file for the JSON; default: none")->type_name("FILE");
    app.add_option("--phases", options.phases, about + "; default: all")
        ->delimiter(',')
        ->check(CLI::Validator(CLI::IsMember(known)).description(""))
        ->type_name("A,B");
    app.add_option("--device", options.device, "number of the device, default 0")->type_name("N");
    app.add_option("--budget-s", options.budget, "seconds for all phases together, default 120")->type_name("S");
    app.add_option("--max-bytes", options.max_bytes, "largest tensor, default 1 GB; at least 4096")->type_name("N");
    app.add_option("--seed", options.seed, "of random patterns, default 1")->type_name("N");
    app.footer(
        "Exit status: 0 all phases passed, 1 one has not, 2 usage, 77 no GPU or no driver.\n"
        "Measuring phases fail on errors of the driver and on wrong reports only, never by a time.\n"
        "On a fake driver the device's name says so, and no figure means anything.\n"
        "Under compute-sanitizer, where times mean nothing either:\n"
        "  compute-sanitizer --tool memcheck numsan_gpu_probe --phases facts,twins,worst --max-bytes 1048576 \\\n"
        "      --budget-s 300 --out FILE        (racecheck, initcheck and synccheck likewise)");
    try {
        app.parse(argc, argv);
        if (options.max_bytes < 4096 || options.budget <= 0)
            throw CLI::ValidationError("--max-bytes or --budget-s", "too small");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return -1;
}

}  // namespace
}  // namespace numsan::gpu::probe

int main(int argc, char** argv) {
    using namespace numsan::gpu;
    probe::Options options;
    if (const int status = probe::parse(argc, argv, options); status >= 0) return status;
    probe::Subject subject;
    subject.max_bytes = options.max_bytes;
    subject.seed = options.seed;
    std::string missing = gpu().open(options.device);
    char reason[256] = "";
    if (missing.empty() && !load_driver("libcuda.so.1", subject.driver, reason, sizeof reason)) missing = reason;
    if (!missing.empty()) {
        std::printf("numsan_gpu_probe: %s\n", missing.c_str());
        return probe::kNoGpu;
    }
    return probe::run(options, subject);
}
