// What a session tells of itself, and how it ends: coverage, failure, process exit, fork.
#include <unistd.h>

#include <optional>
#include <utility>

#include "host/session/run_facts.h"
#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {
namespace {

/// Something was lost: silence does not mean health.
void lose(RunSummary& run, std::string what) {
    run.incomplete = true;
    run.lost = what;
    run.blind_spots.push_back(std::move(what));
}

const char* tier_text(Tier tier) { return tier == Tier::Auto ? "full" : to_string(tier); }

}  // namespace

/// Every op is scanned, or skipped for one reason: the figures add up to `ops`.
void Session::add_coverage(RunSummary& run) const {
    run.scanned = coverage_.scanned();
    run.bytes = coverage_.bytes();
    run.skipped = coverage_.skipped();
    int64_t judged = run.scanned;
    for (const auto& [why, count] : run.skipped) judged += count;
    run.ops = ops_.load(std::memory_order_relaxed);  // last: an op is judged after it was counted
    const DeviceSide* side = device_side();
    const bool device = side != nullptr && finished_.load() && !side->log.empty();
    if (run.ops > judged) run.skipped[device ? "the device had not finished" : "not judged yet"] = run.ops - judged;
}

/// What the tier was where, what was seen of devices, and what of them is not known.
void Session::add_devices(RunSummary& run) const {
    run.tiers["cpu"] = tier_text(options_.tier);
    const DeviceSide* side = device_side();
    if (side == nullptr) {
        if (coverage_.of(OpOutcome::Device) > 0)
            lose(run, "tensors on devices: " + (no_device_.empty() ? "host memory only" : no_device_));
        return;
    }
    run.tiers["cuda"] = options_.tier == Tier::Auto ? to_string(Tier::Sentinel) : to_string(options_.tier);
    if (options_.tier == Tier::Auto) run.tier = to_string(Tier::Sentinel);  // what holds for all of them
    for (const ScannedDevice& device : side->scanner.devices())
        run.devices.push_back(
            {device.index, device.name, std::to_string(device.major) + "." + std::to_string(device.minor)});
    run.device_bytes = side->scanner.device_bytes();
    run.dropped = side->scanner.lost() + side->lost_events.load(std::memory_order_relaxed);
    if (run.dropped > 0) run.incomplete = true;
    if (side->scanner.reason()[0] != '\0') {
        lose(run, std::string("tensors on cuda devices, some or all: ") + side->scanner.reason());
        return;
    }
    if (finished_.load() && !side->log.empty())
        lose(run, "tensors on devices at the end: of the last " + std::to_string(side->log.count()) +
                      " operations the device has not told");
    if (const int64_t behind = coverage_.of(OpOutcome::Behind); behind > 0)
        lose(run, "tensors on devices: " + std::to_string(behind) +
                      " operations came faster than their results could be told");
    if (const int64_t foreign = coverage_.of(OpOutcome::OtherDevice); foreign > 0)
        lose(run, "tensors on another device than the operation ran on: of " + std::to_string(foreign) + " operations");
    if (const int64_t refused = coverage_.of(OpOutcome::Device); refused > 0)
        lose(run, "tensors on devices: the scanner did not take " + std::to_string(refused) + " operations");
    if (const int64_t unread = side->unread_leaving.load(std::memory_order_relaxed); unread > 0) {
        const char* why = side->why_unread_leaving.load();
        lose(run, "values that left a device: " + std::to_string(unread) +
                      " could not be read: " + (why != nullptr ? why : "unknown"));
    }
    // The value itself is read: that it is bad is known, only where it came from may not be.
    if (const int64_t looks = side->looks_left_out.load(std::memory_order_relaxed); looks > 0) {
        run.blind_spots.push_back(
            "what led to values that left a device: results of other streams, or more than the "
            "scanner takes at a time, " +
            std::to_string(looks) + (looks == 1 ? " time" : " times"));
    }
}

RunSummary Session::counts() const {
    RunSummary run;
    run.steps = steps_.count();
    run.tier = tier_text(options_.tier);
    add_coverage(run);
    run.blind_spots = facts_.blind_spots;
    if (const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
        adapter != nullptr && uses_record_function(*adapter)) {
        run.blind_spots.push_back(
            "what saved-tensor hooks compute: operators are seen through record functions (hook: "
            "record_function), as another library holds the dispatch key");
    }
    run.incomplete = failed_.load(std::memory_order_relaxed);
    add_devices(run);
    if (facts_.generated_kernels()) {
        run.blind_spots.push_back(
            "ops inside regions that torch.compile made kernels of: what a region hands back is "
            "looked at where it is read");
    }
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    run.scan_s = scan_clock_.seconds();
    const Verdict::Counts verdict = verdict_.counts();
    run.births = verdict.births;
    run.escaped = verdict.escaped;
    run.absorbed = verdict.absorbed;
    run.framework_version = facts_.torch_version;
    if (!facts_.python_version.empty()) run.python_version = facts_.python_version;
    if (add_coverage_ != nullptr) add_coverage_(run);
    return run;
}

void Session::begin_report() noexcept {
    try {
        RunSummary run = counts();
        lose(run,
             "the run had not ended when this was written; where nothing else follows it was killed, or ended "
             "without the C library's exit");
        reporter_.begin(run);
    } catch (...) {
        fail("out of memory or a failure while writing the first report");
    }
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

/// The environment tells of what a launcher started; a program that numbered its processes itself is asked, seldom.
void Session::learn_rank() noexcept {
    Thread& thread = this_thread();
    const bool busy = std::exchange(thread.busy, true);
    try {
        const bool unknown = ask_rank_ != nullptr && !reporter_.knows_rank();
        const std::optional<ProcessRank> rank = unknown ? ask_rank_(stacks_.on_own_thread) : std::nullopt;
        if (rank.has_value()) reporter_.use(*rank);
    } catch (...) {
        // Out of memory: the report goes without it.
    }
    thread.busy = busy;
}

void Session::decide_pending(bool failed) noexcept {
    if (!on()) return;
    if (DeviceSide* side = device_side()) drain(*side);
    name_state_writes(false);
    try {
        learn_rank();
        const std::optional<LiveNames> gradients = ask_for_gradients();
        Outcome outcome;
        verdict_.finish(failed, outcome);
        publish(outcome, gradients.has_value() ? &*gradients : nullptr);
        name_state_writes(verdict_.may_have_contaminated(), true);
    } catch (...) {
        fail("out of memory or a failure while deciding what is pending");
    }
}

int Session::finish(int status) noexcept {
    if (finished_.exchange(true)) return status;
    if (DeviceSide* side = device_side()) side->scanner.keep_held();
    decide_pending(status != 0);
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
    rounds_.lock();
    log_.lock();
    verdict_.lock();
    stacks_.lock();
}

void Session::after_fork_in_parent() noexcept {
    stacks_.unlock();
    verdict_.unlock();
    log_.unlock();
    rounds_.unlock();
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
    rounds_.unlock();
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
