#include "interpose/runtime/attach_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "host/process/run_facts.h"
#include "host/session/reporter.h"
#include "host/stacks/native_stacks.h"
#include "interpose/cupti/launch_watch.h"
#include "interpose/runtime/process_options.h"

namespace numsan {
namespace {

std::atomic<bool> g_framework{false};
std::atomic<bool> g_asked{false};    ///< launches were to be counted: launch_watch() has been started, or has failed
std::atomic<bool> g_counted{false};  ///< it was started

/// A process that has CUDA and no framework: nothing announces what it computes.
struct PlainRun {
    PlainRun(const Options& given, const numsan_stub_api& stub) : options(given), injection(stub.other_injection) {}

    const Options options;
    const char* const injection;  ///< another tool's injection library, null: none
    const pid_t pid = getpid();
    const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    NativeStacks stacks;
    OpenRanges ranges;
    Reporter reporter{options, stacks, ranges, PlaceFinder(""), run_facts(options)};
};
std::atomic<PlainRun*> g_plain{nullptr};  // never destroyed

std::string counted(int64_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
}

void start_watch(const numsan_stub_api& stub) {
    g_asked.store(true);
    if (!launch_watch().start()) return;
    g_counted.store(true);
    pthread_atfork(nullptr, nullptr, [] { launch_watch().after_fork_in_child(); });
    stub.set_cupti_yield([](int for_good) { launch_watch().yield(for_good != 0); },
                         [] { launch_watch().take_again(); });
}

/// Why launches are not counted.
std::string why_uncounted(const PlainRun& plain) {
    if (plain.options.cupti == Cupti::Off) return "cupti=off";
    if (!g_asked.load() && plain.injection != nullptr)
        return std::string("CUDA_INJECTION64_PATH names the library of another tool, ") + plain.injection;
    const std::string why = launch_watch().why();
    return why.empty() ? "CUPTI could not be used" : why;
}

/// True for a process that launched nothing: there is nothing to say of it.
bool was_idle() { return g_counted.load() && !launch_watch().has_gaps() && launch_watch().launches().total() == 0; }

RunSummary summary_of(const PlainRun& plain, bool ended) {
    RunSummary run;
    run.incomplete = true;
    if (!ended) {
        run.lost =
            "no framework announced the work of this CUDA program; nothing was scanned, and how much there was "
            "is reported when it has ended";
        run.blind_spots.push_back(run.lost);
        return run;
    }
    if (g_counted.load()) {
        const int64_t launches = launch_watch().launches().total();
        run.lost = "no framework announced the work of this CUDA program; " +
                   counted(launches, "kernel launch was", "kernel launches were") + " counted and nothing was scanned";
    } else {
        run.lost =
            "no framework announced the work of this CUDA program; nothing was scanned, and kernels were not "
            "counted: " +
            why_uncounted(plain);
    }
    run.blind_spots.push_back(run.lost);
    add_launches(run);
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - plain.started).count();
    return run;
}

void on_process_exit(int status, void*) {
    PlainRun& plain = *g_plain.load();
    if (g_framework.load() || getpid() != plain.pid) return;
    try {
        if (was_idle()) {
            plain.reporter.withdraw();
            return;
        }
        RunSummary run = summary_of(plain, true);
        run.ended = now_text();
        run.exit_status = status;
        plain.reporter.finish(run);
    } catch (...) {
        // Out of memory at the very end: the report of the start says as much as is known.
    }
}

void start_plain_run(const Options& options, const numsan_stub_api& stub) {
    auto* plain = new PlainRun(options, stub);
    const bool others = stub.other_injection != nullptr;  // a tool that sets that wants CUPTI itself
    if (options.cupti == Cupti::On || (options.cupti == Cupti::Auto && !others)) start_watch(stub);
    g_plain.store(plain);
    on_exit(on_process_exit, nullptr);
    plain->reporter.begin(summary_of(*plain, false));  // what is left of a process that is killed
}

}  // namespace

bool cuda_started(const numsan_stub_api& stub) {
    static std::atomic<bool> started{false};
    if (started.exchange(true)) return true;
    const Options& options = process_options();
    if (options.tier == Tier::Off) return false;
    if (!g_framework.load()) {
        start_plain_run(options, stub);
        if (g_framework.load() && options.cupti != Cupti::On) launch_watch().yield(true);  // torch came meanwhile
    } else if (options.cupti == Cupti::On) {
        start_watch(stub);
        if (!g_counted.load() && options.verbosity >= 1 && options.log != "none")
            say(("kernel launches are not counted: " + launch_watch().why()).c_str());
    }
    return true;
}

void framework_attaches() noexcept {
    g_framework.store(true);
    if (g_counted.load() && process_options().cupti != Cupti::On) launch_watch().yield(true);
}

void add_launches(RunSummary& run) {
    if (!g_asked.load()) return;
    const LaunchWatch& watch = launch_watch();
    if (!g_counted.load()) {
        if (g_framework.load()) run.blind_spots.push_back("kernel launches: not counted: " + watch.why());
        return;
    }
    run.launches = watch.launches().total();
    for (const auto& [name, count] : watch.launches().launches()) run.kernels[demangled(name)] += count;
    if (!watch.has_gaps()) return;
    run.blind_spots.push_back(watch.watching() ? "kernel launches while another tool had CUPTI: not counted"
                                               : "kernel launches since another tool took CUPTI: not counted");
}

}  // namespace numsan
