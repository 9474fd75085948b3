// One per process: takes events from the adapter, scans, keeps the books, hands what matters to verdict and reporter.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "host/analyze/verdict.h"
#include "host/core/adapter_abi.h"
#include "host/core/scanner.h"
#include "host/options/options.h"
#include "host/session/forward_map.h"
#include "host/session/op_log.h"
#include "host/session/reporter.h"
#include "host/session/step_counter.h"
#include "host/session/tier_policy.h"
#include "host/session/torch_frames.h"
#include "host/session/worker_births.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// What only the caller knows about the process.
struct SessionFacts {
    std::string torch_version;
    std::string torch_root;
    std::string python_version;             ///< empty without Python
    std::vector<std::string> blind_spots;   ///< what cannot be seen here, in a user's words
};

/// Made once and never destroyed: other threads may be inside it when the process ends. [MT] but for start and finish.
class Session {
  public:
    Session(Options options, const Scanner& scanner, StackSource& stacks, SessionFacts facts);

    void op_end(const OpEvent& event) noexcept;
    void node_begin(const NodeEvent& event) noexcept;
    void node_end() noexcept;
    void scope_begin(const char* name) noexcept;
    void scope_end(const char* name) noexcept;
    /// An output was not looked at; `why` is a literal, a key of the report's coverage.skipped.
    void skipped(const char* why) noexcept;

    /// What the adapter can be asked, once it is there.
    void use(const AdapterApi& adapter) noexcept;

    /// Large outputs may be scanned by several threads from now on; null: no longer.
    void share_scans(ShareWork share) noexcept { share_.store(share, std::memory_order_relaxed); }

    /// The first internal failure: one line, then off.
    void fail(const char* why) noexcept;
    bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

    /// While names can still be looked up (before Python goes away): decides what is pending.
    void decide_pending() noexcept;
    /// The process ends with this status. Returns the status it should end with (see fail_on).
    int finish(int status) noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

    Reporter& reporter() { return reporter_; }

  private:
    struct Thread;
    struct Counters {
        std::atomic<int64_t> ops{0}, scanned{0}, bytes{0}, integers{0}, device{0}, left_out{0};
    };
    /// Outputs that the adapter could not show, by reason. The last entry takes what finds no room.
    struct Skipped {
        std::atomic<const char*> why{nullptr};
        std::atomic<int64_t> count{0};
    };
    static constexpr size_t kMaxReasons = 12;

    /// outputs of one op whose range is kept; an optimizer's list can have hundreds
    static constexpr int32_t kMaxRanges = 16;

    static constexpr uint64_t kAllOutputs = ~uint64_t(0);

    static Thread& this_thread();
    OpContext context_of(Thread& thread, const OpEvent* event, int64_t seq);
    uint64_t scan(const OpEvent& event, uint64_t wanted, Range* ranges) noexcept;

    // what a tier left out: look_back.cpp
    bool is_bad(const TensorView& tensor) const;
    void look_behind(const OpEvent& event, uint64_t bad, int64_t step, Outcome& outcome);
    void look_behind(const NodeEvent& event, int64_t step, Outcome& outcome);
    void look_back(Outcome& outcome);
    void read_what_is_left(LoggedOp& op, const std::map<const void*, int64_t>& last_writes,
                           std::vector<const void*>& borrowed);
    void give_back(Thread& thread) noexcept;
    void remember(const OpEvent& event, const OpContext& context, const Range* ranges) noexcept;
    void name_state_writes() noexcept;
    void forward_of(const OpContext& context, ForwardRecord& forward);
    void publish(const Outcome& outcome);
    RunSummary counts() const;

    const Options options_;
    const Scanner& scanner_;
    StackSource& stacks_;
    const SessionFacts facts_;
    const std::chrono::steady_clock::time_point started_;
    std::atomic<const AdapterApi*> adapter_{nullptr};
    std::atomic<ShareWork> share_{nullptr};
    std::atomic<bool> on_{true};
    std::atomic<bool> failed_{false};
    std::atomic<bool> finished_{false};
    StepCounter steps_;
    std::atomic<bool> learning_{false};  ///< a gradient has reached a parameter
    static constexpr int kMaxLookUps = 32;
    std::atomic<int> look_ups_{0};  ///< of names that no new finding needs: of state, of what a finding contaminated
    Counters counters_;
    Skipped skipped_[kMaxReasons];
    TierPolicy tier_;
    OpLog log_;
    ForwardMap forwards_;
    Lineage lineage_;
    ParameterHistory parameters_;
    const TorchFrames frames_;
    WorkerBirths worker_births_;
    Verdict verdict_;
    Reporter reporter_;
};

}  // namespace numsan
