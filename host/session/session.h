// One per process: takes events from the adapter and sends them through the parts that scan, judge and report.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/base/adapter_abi.h"
#include "host/base/scanner.h"
#include "host/breaks/break_points.h"
#include "host/device/device_readings.h"
#include "host/device/devices.h"
#include "host/diagnosis/gather/signal_gatherer.h"
#include "host/dump/dumps.h"
#include "host/event/event_parts.h"
#include "host/event/look_back.h"
#include "host/options/options.h"
#include "host/perf/slow_watch.h"
#include "host/session/finding_publisher.h"
#include "host/session/off_switch.h"
#include "host/session/reporter.h"
#include "host/session/run_counts.h"
#include "host/session/session_facts.h"
#include "host/session/torch_frames.h"
#include "host/session/worker_births.h"
#include "host/stacks/process_rank.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// Made once and never destroyed: other threads may be inside it when the process ends. [MT] but for start and finish.
class Session : private DeviceOwner {
  public:
    Session(Options options, const Scanner& scanner, StackSource& stacks, SessionFacts facts);

    void op_end(const OpEvent& event) noexcept;
    /// Whether the option `perf` measures this run: then op_begin() comes before each op, and op_end_measured() takes
    /// the place of op_end().
    bool measures() const noexcept { return slow_ != nullptr; }
    void op_begin() noexcept { slow_->op_begins(); }
    void op_end_measured(const OpEvent& event) noexcept;
    /// An op of the host threw: no outputs. Not counted as an op.
    void op_failed(const OpEvent& event) noexcept;
    void node_begin(const NodeEvent& event) noexcept;
    void node_end() noexcept;
    void scope_begin(const char* name) noexcept;
    void scope_end(const char* name) noexcept;
    void range(const RangeEvent& event) noexcept { parts_.contexts.ranges().take(this_thread().ranges, event); }
    /// An output of this thread's next op cannot be looked at; `why` is a literal, a key of the report's
    /// coverage.skipped.
    void skipped(const char* why) noexcept;

    /// What the adapter can be asked, once it is there.
    void use(const AdapterApi& adapter) noexcept;

    /// An op of this thread is about to write a device's memory in place.
    void before_write(const void* storage) noexcept { devices_.before_write(storage); }
    /// An op of this thread is about to hand a device's values to the host.
    void before_wait() noexcept {
        devices_.before_wait();
        if (slow_ != nullptr) slow_->waits();
    }
    /// False while the program asks not to look, and where an op of this thread is looked at now.
    bool looks() const noexcept {
        const ThreadState& thread = this_thread();
        return on() && !thread.busy && !parts_.contexts.ignores(thread);
    }
    bool read_device(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) noexcept {
        return on() && devices_.read(queue, from, bytes, to);
    }

    /// Makes the scanner of devices when the first tensor of one is seen; before the first event.
    void use_devices(MakeDeviceScanner make) noexcept { devices_.use(make); }

    /// What adds to the report's coverage what the session does not know; before the first event.
    void use_coverage(void (*add)(RunSummary&)) noexcept { counts_.use(add); }

    /// What knows the rank where the environment does not say it; before the first event.
    void use_rank(AskRank ask) noexcept { publisher_.use(ask); }

    /// What shows each new finding to other tools; before the first event.
    void use_marks(MarkFinding mark) noexcept { publisher_.use(mark); }

    /// Where the ranks of a job leave their first errors for rank 0; before the first event.
    void use_job(const JobStore& store) noexcept { publisher_.use(store); }

    /// With the option `break`: what decides where the program stops; before the first event. It outlives the session.
    void use(BreakPoints& breaks) noexcept { breaks_ = &breaks; }

    /// Large outputs may be scanned by several threads from now on; null: no longer.
    void share_scans(ShareWork share) noexcept { parts_.scan.share(share); }

    /// The first internal failure: one line, then off.
    void fail(const char* why) noexcept override { off_.fail(why); }
    bool on() const noexcept override { return off_.on(); }

    /// While names can still be looked up (before Python goes away): decides what is pending.
    void decide_pending(bool failed) noexcept;
    /// Leaves a report that says so little, for a process that is killed before it has more to say.
    void begin_report() noexcept;
    /// The process ends with this status. Returns the status it should end with (see fail_on).
    int finish(int status) noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

    Reporter& reporter() { return reporter_; }
    const Options& options() const { return options_; }
    Verdict& verdict() { return parts_.verdict; }
    const Lineage& lineage() const { return parts_.lineage; }

  private:
    bool op_on_device(ThreadState& thread, const OpEvent& event);
    void examine(ThreadState& thread, const OpEvent& event, OpContext& context, OutputSet wanted, OutputSet bad,
                 const Range* ranges, const ForwardMap::Made& made, const Operands& operands);
    void end_optimizer_step(ThreadState& thread) noexcept;
    void halt_if(bool found);
    void publish(const Outcome& outcome) override;
    void name_state(bool kept) noexcept;
    void name_parameters() noexcept;
    void warn_early() noexcept;
    void write_last(RunSummary run);
    void name_state() noexcept override { name_state(parts_.verdict.optimizer_end()); }

    const Options options_;
    StackSource& stacks_;
    const SessionFacts facts_;
    TorchFrames frames_;
    WorkerBirths worker_births_;
    DeviceReadings readings_;
    EventParts parts_;
    LookBack look_back_;
    Devices devices_;
    Dumps dumps_;
    std::unique_ptr<SignalGatherer> signals_;  ///< with the option `diagnose`, else null
    Reporter reporter_;
    OffSwitch off_;
    RunCounts counts_;
    FindingPublisher publisher_;
    BreakPoints* breaks_ = nullptr;
    const std::unique_ptr<SlowWatch> slow_;  ///< null without the option `perf`
    std::atomic<bool> halting_{false};       ///< the process is about to end while its threads still train
    std::atomic<bool> finished_{false};
};

}  // namespace numsan
