// One per process: takes events from the adapter, scans, keeps the books, hands what matters to verdict and reporter.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "host/analyze/headroom.h"
#include "host/analyze/verdict.h"
#include "host/base/adapter_abi.h"
#include "host/base/scanner.h"
#include "host/options/options.h"
#include "host/session/device_readings.h"
#include "host/session/device_side.h"
#include "host/session/forward_map.h"
#include "host/session/op_coverage.h"
#include "host/session/op_log.h"
#include "host/session/optimizer_rounds.h"
#include "host/session/reporter.h"
#include "host/session/run_facts.h"
#include "host/session/scan_clock.h"
#include "host/session/step_counter.h"
#include "host/session/tier_policy.h"
#include "host/session/torch_frames.h"
#include "host/session/worker_births.h"
#include "host/stacks/process_rank.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// What only the caller knows about the process.
struct SessionFacts {
    std::string torch_version;
    std::string torch_root;
    std::string python_version;            ///< empty without Python
    std::vector<std::string> blind_spots;  ///< what cannot be seen here, in a user's words

    // What a session asks of its process, for who answers instead.
    std::optional<RunSummary> run;  ///< none: run_facts()
    bool (*generated_kernels)() = runs_generated_kernels;
    void (*leave)(int status) = _exit;  ///< with `halt`; does not return
    BirthExchange* (*over_notes)(BirthExchange& of_process) =
        nullptr;  ///< who stands between the verdict and these; null: none
};

/// Null, and in `why` the reason, where devices cannot be scanned. The scanner lives as long as the process.
using MakeDeviceScanner = DeviceScanner* (*)(const OpEvent& first, std::string& why);

class LookBackScans;

/// Made once and never destroyed: other threads may be inside it when the process ends. [MT] but for start and finish.
class Session {
  public:
    Session(Options options, const Scanner& scanner, StackSource& stacks, SessionFacts facts);

    void op_end(const OpEvent& event) noexcept;
    /// An op of the host threw: no outputs. Not counted as an op.
    void op_failed(const OpEvent& event) noexcept;
    void node_begin(const NodeEvent& event) noexcept;
    void node_end() noexcept;
    void scope_begin(const char* name) noexcept;
    void scope_end(const char* name) noexcept;
    /// Until the end of it, what happens on any thread is the program's own business, as inside numsan:ignore.
    void ignore_begin() noexcept { ignoring_.fetch_add(1, std::memory_order_relaxed); }
    void ignore_end() noexcept { ignoring_.fetch_sub(1, std::memory_order_relaxed); }
    /// An output of the op that this thread tells of next cannot be looked at; `why` is a literal, a key of the
    /// report's coverage.skipped.
    void skipped(const char* why) noexcept;

    /// What the adapter can be asked, once it is there.
    void use(const AdapterApi& adapter) noexcept;

    /// An op of this thread is about to write a device's memory in place.
    void before_write(const void* storage) noexcept;
    /// An op of this thread is about to hand a device's values to the host.
    void before_wait() noexcept;

    /// Makes the scanner of devices when the first tensor of one is seen; before the first event.
    void use_devices(MakeDeviceScanner make) noexcept { make_device_scanner_ = make; }

    /// Who adds to the report's coverage what the session does not know; before the first event.
    void use_coverage(void (*add)(RunSummary&)) noexcept { add_coverage_ = add; }

    /// Who knows the rank where the environment does not tell; before the first event.
    void use_rank(AskRank ask) noexcept { ask_rank_ = ask; }

    /// Large outputs may be scanned by several threads from now on; null: no longer.
    void share_scans(ShareWork share) noexcept { share_.store(share, std::memory_order_relaxed); }

    /// The first internal failure: one line, then off.
    void fail(const char* why) noexcept;
    bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

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

  private:
    struct Thread;
    /// outputs of one op whose range is kept; an optimizer's list can have hundreds
    static constexpr int32_t kMaxRanges = 16;

    /// What is looked up of an op's operands once.
    struct Operands {
        Lineage::Known known[Lineage::kMaxKnown];
    };

    static Thread& this_thread();
    static bool accumulates(const Thread& thread);
    OpContext context_of(Thread& thread, int64_t seq);
    void trace(const OpEvent& event, OpContext& context, Operands* operands = nullptr) noexcept;
    void follow(Thread& thread, const OpEvent& event, OpContext& context);
    void count_step(const Thread& thread, const OpEvent& event, OpContext& context) noexcept;
    void learn_round(Thread& thread, const OpEvent& event);
    void end_optimizer_step(Thread& thread) noexcept;
    static void narrow_state(const OpEvent& event, OpContext& context) noexcept;
    struct Made {
        ForwardMap::Record record;
        bool node;  ///< the op made the node that has this number
    };
    Made note_forward(const OpEvent& event, const OpContext& context);
    bool judge(const OpEvent& event, OpContext& context, OutputSet bad, const Range* ranges, const Made& made,
               bool accumulates, Outcome& outcome);
    uint16_t near_overflow(const OpEvent& event, const OpContext& context, const Range* ranges) noexcept;
    bool near_overflow_is_due(const OpEvent& event, const OpContext& context) noexcept;
    bool concerns(const OpEvent& event, const OpContext& context, OutputSet bad, const Range* ranges) const noexcept;
    void examine(Thread& thread, const OpEvent& event, OpContext& context, OutputSet wanted, OutputSet bad,
                 const Range* ranges, const Made& made);
    OutputSet scan(const OpEvent& event, int64_t seq, OutputSet wanted, Range* ranges, OpTally& tally) noexcept;
    OutputSet scan_any(const OpEvent& event, int64_t seq, OutputSet wanted, Range* ranges, OpTally& tally) noexcept;
    bool is_of_device(Thread& thread, const OpEvent& event);

    // what a tier left out: look_back.cpp
    bool is_bad(const TensorView& tensor) const;
    void look_behind(const OpEvent& event, OutputSet bad, int64_t step, Outcome& outcome);
    void look_behind(const NodeEvent& event, int64_t step, Outcome& outcome);
    void look_back(Outcome& outcome);
    void read_what_is_left(LoggedOp& op, const std::map<const void*, int64_t>& last_writes,
                           std::vector<const void*>& pinned);
    std::map<const LoggedOp*, KindSet> implied_by(const std::vector<LoggedOp*>& ops);
    void judge_past(const std::vector<LoggedOp*>& ops, Outcome& outcome);
    void unpin(Thread& thread, const OpLog& log) noexcept;
    void remember(const OpEvent& event, const OpContext& context, const Range* ranges, bool accumulates,
                  const Operands* operands = nullptr) noexcept;

    // events that touch a device's memory: device_events.cpp
    DeviceSide* device_side() const noexcept { return device_.load(std::memory_order_acquire); }
    DeviceSide* device_side(const OpEvent& event) noexcept;
    void device_op(DeviceSide& side, Thread& thread, const OpEvent& event);
    static bool ask_autograd_facts(const OpEvent& event, uint32_t (&autograd_facts)[kMaxAutogradFacts]);
    static void count_unwatched(DeviceSide& side, const OpEvent& event) noexcept;
    std::unique_ptr<LookBackScans> ask_back(DeviceSide& side, Thread& thread, const OpEvent& event);
    void look_behind_bad(DeviceSide& side, const DeviceEvent& event);
    void leave_unread(DeviceSide& side, const OpEvent& event, const OpContext& context, const Made& made,
                      OutputSet read);
    void hand_over(DeviceSide& side, DeviceEvent& event, LookBackScans* past);
    void device_node(DeviceSide& side, const NodeEvent& event, const OpContext& context);
    bool mark(DeviceSide* side, DeviceEvent::Kind kind) noexcept;
    void commit(DeviceSide& side, DeviceEvent& event) noexcept;
    void settle_before(OutputSet bad) noexcept {
        if (!bad.any()) return;
        if (DeviceSide* side = device_side()) settle(*side);
    }
    void settle(DeviceSide& side) noexcept;
    void publish_settled(DeviceSide& side);
    void await_published(DeviceSide& side) noexcept;
    void settle(DeviceSide& side, DeviceEvent& event);
    static const DeviceSide::Answer* watched_answer(const DeviceSide& side, const DeviceEvent& event, int32_t i);
    void settle_node(DeviceSide& side, DeviceEvent& event);
    void take_host_readings(DeviceEvent& event, Range* ranges, OutputSet& bad);
    OutputSet take_answers(DeviceSide& side, DeviceEvent& event, Range* ranges, OutputSet& bad);
    void count_unread_leaving(DeviceSide& side, const DeviceEvent& event);
    void take_copied(const DeviceEvent& event, Range* ranges, OutputSet& bad);
    void settle_op(DeviceSide& side, DeviceEvent& event);
    void settle_replays(DeviceSide& side);
    void settle_replay(DeviceSide& side, const DeviceEvent& event, ScanTicket sequence, const DeviceHit& hit);
    void read_device(DeviceSide& side);
    // what a device's tier left out: device_look_back.cpp
    using LastWrites = std::map<const void*, int64_t>;  ///< by storage: the number of the op
    int64_t last_write(const LastWrites& writes, const void* storage) const;
    void take_results(const DeviceSide& side, const DeviceEvent& event, uint64_t number, LoggedOp& op,
                      const LastWrites& writes, size_t& next);
    void mark_operands(LoggedOp& op, uint8_t there, const std::set<const void*>& answered, const LastWrites& writes);
    bool is_explained(TensorView tensor, const DeviceHit* hit);
    void look_back(DeviceSide& side, const DeviceEvent& event);
    void look_behind(DeviceSide& side, const DeviceEvent& event, const TensorView& gradient, const Range& range,
                     const DeviceHit* hit);
    void drain(DeviceSide& side) noexcept;
    TensorReader tensor_reader() const noexcept;
    void name_state_writes(bool kept, bool last = false) noexcept;
    std::optional<LiveNames> ask_for_gradients();
    void forward_of(const OpContext& context, ForwardRecord& forward);
    void publish(const Outcome& outcome, const LiveNames* known = nullptr);
    RunSummary counts() const;
    void learn_rank() noexcept;
    void add_coverage(RunSummary& run) const;
    void add_devices(RunSummary& run) const;

    const Options options_;
    const Scanner& scanner_;
    StackSource& stacks_;
    const SessionFacts facts_;
    const std::chrono::steady_clock::time_point started_;
    std::atomic<const AdapterApi*> adapter_{nullptr};
    std::atomic<bool> halting_{false};  ///< the process is about to end while its threads still train
    std::atomic<ShareWork> share_{nullptr};
    std::atomic<bool> on_{true};
    std::atomic<bool> failed_{false};
    std::atomic<bool> finished_{false};
    std::atomic<int> ignoring_{0};  ///< ignored ranges of the whole process
    StepCounter steps_;
    OptimizerRounds rounds_;
    std::atomic<bool> learning_{false};  ///< a gradient has reached a parameter
    static constexpr int kMaxLookUps = 32;
    std::atomic<int> look_ups_{0};  ///< of names that no new finding needs: of state, of what a finding contaminated
    std::atomic<int64_t> ops_{0};
    OpCoverage coverage_;
    ScanClock scan_clock_;
    TierPolicy tier_;
    OpLog log_;
    ForwardMap forwards_;
    Lineage lineage_;
    ParameterHistory parameters_;
    uint64_t near_overflow_from_[kDTypeCount] = {};  ///< by type: see near_overflow_pattern()
    NearOverflowPlaces near_overflow_places_;
    const TorchFrames frames_;
    WorkerBirths worker_births_;
    MakeDeviceScanner make_device_scanner_ = nullptr;
    void (*add_coverage_)(RunSummary&) = nullptr;
    AskRank ask_rank_ = nullptr;
    std::atomic<bool> asked_rank_in_step_{false};
    std::string no_device_;  ///< why there is no scanner of devices; written once, before anybody asks
    std::once_flag device_once_;
    std::atomic<DeviceSide*> device_{nullptr};
    DeviceReadings readings_;
    Verdict verdict_;
    Reporter reporter_;
};

}  // namespace numsan
