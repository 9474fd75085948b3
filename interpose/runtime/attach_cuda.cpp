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
#include "interpose/runtime/plain_session.h"
#include "interpose/runtime/process_options.h"

namespace numsan {
namespace {

std::atomic<bool> g_framework{false};
std::atomic<bool> g_asked{false};    ///< launches were to be counted: launch_watch() has been started, or has failed
std::atomic<bool> g_counted{false};  ///< it was started

/// What reports of a process whose kernels are not looked at.
struct UnseenRun {
    explicit UnseenRun(const Options& options)
        : reporter(options, stacks, ranges, PlaceFinder(""), run_facts(options)) {}

    NativeStacks stacks;
    OpenRanges ranges;
    Reporter reporter;
};

/// A process that has CUDA and no framework: nothing announces what it computes.
struct PlainRun {
    PlainRun(const Options& given, const numsan_stub_api& stub)
        : options(given), injection(stub.other_injection), set_exit_status(stub.set_exit_status) {}

    Reporter& reporter() { return session != nullptr ? session->session().reporter() : unseen->reporter; }

    const Options options;
    const char* const injection;  ///< another tool's injection library, null: none
    void (*const set_exit_status)(int status);
    const pid_t pid = getpid();
    const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    std::unique_ptr<PlainSession> session;  ///< of kernels that are looked at; null: `unseen` is set
    std::optional<UnseenRun> unseen;
    std::atomic<bool> ended{false};
    std::atomic<int> wanted{0};  ///< exit status for what was found before torch came; 0: the program's own
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

/// A run that launched nothing leaves no report. The exit status that is wanted. Once: `status` comes back else.
int end_plain_run(PlainRun& plain, int status) noexcept {
    if (plain.ended.exchange(true)) return status;
    try {
        if (was_idle()) {
            plain.reporter().withdraw();
            return status;
        }
        if (plain.session != nullptr) return plain.session->session().finish(status);
        RunSummary run = summary_of(plain, true);
        run.ended = now_text();
        run.exit_status = status;
        plain.reporter().finish(run);
    } catch (...) {
        // Out of memory at the very end: the report of the start says as much as is known.
    }
    return status;
}

/// Torch's session reports from now on. What was found before fails the process, too, where that was asked for. Of a
/// run whose kernels are not looked at there is no more to say than what torch's report will.
void hand_over(PlainRun& plain) noexcept {
    if (plain.session == nullptr) return;
    if (const int wanted = end_plain_run(plain, 0); wanted != 0) plain.wanted.store(wanted);
}

void on_process_exit(int status, void*) {
    PlainRun& plain = *g_plain.load();
    if (getpid() != plain.pid) return;
    const int wanted = g_framework.load() ? plain.wanted.load() : end_plain_run(plain, status);
    if (status == 0 && wanted != 0) plain.set_exit_status(wanted);
}

/// What the session does not know itself.
void add_plain_coverage(RunSummary& run) {
    add_launches(run);
    const PlainRun* const plain = g_plain.load();
    if (plain != nullptr && plain->session != nullptr) plain->session->add_coverage(run);
}

/// Kernels are looked at from now on. False: CUPTI cannot be used.
bool look_at_kernels(PlainRun& plain, const numsan_stub_api& stub) {
    auto session = std::make_unique<PlainSession>(plain.options, add_plain_coverage);
    launch_watch().use(*session);
    static PlainSession* forks = nullptr;
    forks = session.get();
    plain.session = std::move(session);
    start_watch(stub);
    if (g_counted.load()) {
        pthread_atfork([] { forks->session().before_fork(); }, [] { forks->session().after_fork_in_parent(); },
                       [] {
                           end_library_calls();  // a forked child has no CUDA
                           forks->session().after_fork_in_child();
                       });
        hear_library_calls(*forks);
        return true;
    }
    plain.session.release();  // the watch knows it
    return false;
}

void start_plain_run(const Options& options, const numsan_stub_api& stub) {
    auto* plain = new PlainRun(options, stub);
    const bool others = stub.other_injection != nullptr;  // a tool that sets that wants CUPTI itself
    const bool watches = options.cupti == Cupti::On || (options.cupti == Cupti::Auto && !others);
    bool looks = false;
    if (watches && options.raw)
        looks = look_at_kernels(*plain, stub);
    else if (watches)
        start_watch(stub);
    if (!looks) plain->unseen.emplace(options);
    if (!options.raw && !options.kernels.empty())
        plain->reporter().say("kernels=PATH has no effect without raw=1: no kernel is looked at");
    if (looks)
        plain->session->session().begin_report();
    else
        plain->reporter().begin(summary_of(*plain, false));  // what is left of a process that is killed
    g_plain.store(plain);
    on_exit(on_process_exit, nullptr);
}

}  // namespace

bool cuda_started(const numsan_stub_api& stub) {
    static std::atomic<bool> started{false};
    if (started.exchange(true)) return true;
    const Options& options = process_options();
    if (options.tier == Tier::Off) return false;
    if (!g_framework.load()) {
        start_plain_run(options, stub);
        if (g_framework.load()) {  // it came meanwhile
            end_library_calls();
            hand_over(*g_plain.load());
            if (options.cupti != Cupti::On) launch_watch().yield(true);
        }
    } else if (options.cupti == Cupti::On) {
        start_watch(stub);
        if (!g_counted.load() && options.verbosity >= 1 && options.log != "none")
            say(("kernel launches are not counted: " + launch_watch().why()).c_str());
    }
    return true;
}

void framework_attaches() noexcept {
    g_framework.store(true);
    launch_watch().end_listening();
    end_library_calls();
    if (PlainRun* const plain = g_plain.load(); plain != nullptr) hand_over(*plain);
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
