// What a session tells of itself, and how it ends: coverage, failure, process exit, fork.
#include <unistd.h>

#include <cstring>

#include "host/session/run_facts.h"
#include "host/session/session.h"

namespace numsan {
RunSummary Session::counts() const {
    RunSummary run;
    run.steps = steps_.count();
    run.ops = counters_.ops.load(std::memory_order_relaxed);
    run.scanned = counters_.scanned.load(std::memory_order_relaxed);
    run.bytes = counters_.bytes.load(std::memory_order_relaxed);
    const auto add = [&](const char* why, const std::atomic<int64_t>& count) {
        if (const int64_t n = count.load(std::memory_order_relaxed); n > 0) run.skipped[why] = n;
    };
    add("integer", counters_.integers);
    add("cuda", counters_.device);
    add("tier", counters_.left_out);
    for (const Skipped& entry : skipped_) {
        if (const char* why = entry.why.load(std::memory_order_acquire)) add(why, entry.count);
    }
    run.blind_spots = facts_.blind_spots;
    if (const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
        adapter != nullptr && uses_record_function(*adapter)) {
        run.blind_spots.push_back(
            "what saved-tensor hooks compute: operators are seen through record functions (hook: "
            "record_function), as another library holds the dispatch key");
    }
    run.incomplete = failed_.load(std::memory_order_relaxed);
    const auto lose = [&](std::string what) {
        run.incomplete = true;
        run.lost = what;
        run.blind_spots.push_back(std::move(what));
    };
    if (counters_.device.load(std::memory_order_relaxed) > 0)
        lose("tensors on devices: " + (no_device_.empty() ? "host memory only" : no_device_));
    if (const DeviceSide* side = device_side(); side != nullptr && side->scanner.reason()[0] != '\0')
        lose(std::string("tensors on cuda devices since an error of the driver: ") + side->scanner.reason());
    else if (finished_.load() && side != nullptr && !side->log.empty())
        lose("tensors on devices at the end: of the last " + std::to_string(side->log.count()) +
             " operations the device has not told");
    if (runs_generated_kernels()) {
        run.blind_spots.push_back(
            "ops inside regions that torch.compile made kernels of: what a region hands back is "
            "looked at where it is read");
    }
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    const Verdict::Counts verdict = verdict_.counts();
    run.births = verdict.births;
    run.escaped = verdict.escaped;
    run.absorbed = verdict.absorbed;
    run.framework_version = facts_.torch_version;
    if (!facts_.python_version.empty()) run.python_version = facts_.python_version;
    if (add_coverage_ != nullptr) add_coverage_(run);
    return run;
}

void Session::fail(const char* why) noexcept {
    if (failed_.exchange(true)) return;
    on_.store(false);
    try {
        reporter_.say(std::string("off: ") + why);
    } catch (...) {
        // Nothing is left to say it with; the program runs on.
    }
}

void Session::decide_pending() noexcept {
    if (!on()) return;
    if (DeviceSide* side = device_side()) drain(*side);
    name_state_writes(false);
    try {
        const std::optional<LiveNames> gradients = ask_for_gradients();
        Outcome outcome;
        verdict_.finish(outcome);
        publish(outcome, gradients.has_value() ? &*gradients : nullptr);
        name_state_writes(verdict_.wants_kept(true), true);
    } catch (...) {
        fail("out of memory or a failure while deciding what is pending");
    }
}

int Session::finish(int status) noexcept {
    if (finished_.exchange(true)) return status;
    decide_pending();
    steps_.finish();
    try {
        RunSummary run = counts();
        run.ended = now_text();
        run.exit_status = status;
        reporter_.finish(run);
        const bool wanted = (options_.fail_on == FailOn::Error && reporter_.has(Severity::Error)) ||
                            (options_.fail_on == FailOn::Warning && reporter_.has(Severity::Warning));
        if (status == 0 && wanted) return static_cast<int>(options_.exitcode);
    } catch (...) {
        fail("out of memory or a failure while writing the last report");
    }
    return status;
}

void Session::before_fork() noexcept {
    reporter_.lock();
    if (DeviceSide* side = device_side()) {
        side->settling.lock();
        side->log.lock();
        side->unread.lock();
    }
    log_.lock();
    verdict_.lock();
    stacks_.lock();
}

void Session::after_fork_in_parent() noexcept {
    stacks_.unlock();
    verdict_.unlock();
    log_.unlock();
    if (DeviceSide* side = device_side()) {
        side->unread.unlock();
        side->log.unlock();
        side->settling.unlock();
    }
    reporter_.unlock();
}

void Session::after_fork_in_child() noexcept {
    share_scans(nullptr);  // the threads stayed with the parent
    stacks_.unlock();
    verdict_.forget_pending();
    worker_births_.begin_child();
    verdict_.unlock();
    log_.forget_parents();
    log_.unlock();
    if (DeviceSide* side = device_side()) {
        side->begin_child();
        side->scanner.close();
        side->unread.unlock();
        side->log.unlock();
        side->settling.unlock();
    }
    try {
        reporter_.begin_child();
    } catch (...) {
        on_.store(false);
    }
    reporter_.unlock();
}

}  // namespace numsan
