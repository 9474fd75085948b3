// With the option `perf`: measures where a run loses time. A session tells it of ops and steps.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/finding/place_of.h"
#include "host/finding/slow/slow_run.h"
#include "host/perf/loops/sample_loops.h"
#include "host/perf/watched_steps.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

struct SlowThread;

/// [MT] No lock. An op's time is that between op_begins(), just before torch's own kernel is called, and op_ended(). On
/// a device that is the time to launch it, so of its ops only waits and copies of the host count. Counted are ops of
/// the thread that ends steps, and those of autograd; the time that numsan itself takes is
/// measured and left out of steps. Where several threads end steps nothing is measured.
class SlowWatch {
  public:
    using Clock = int64_t (*)() noexcept;  ///< ns

    /// What it is made with outlives it. `ops`: how many were numbered.
    SlowWatch(const Lineage& lineage, StackSource& stacks, const std::atomic<int64_t>& ops, Clock clock = steady_ns);

    SlowWatch(const SlowWatch&) = delete;
    SlowWatch& operator=(const SlowWatch&) = delete;
    ~SlowWatch();  ///< no thread is in it any more

    /// This thread's next op is about to wait for a device.
    void waits() noexcept;
    /// This thread calls an op.
    void op_begins() noexcept {
        if (steps_.looking()) note_begin();
    }
    /// It is over, and the session has not heard of it. `ignored`: nothing is to be said of it.
    void op_ended(const OpEvent& event, bool ignored = false) noexcept;
    /// The session has.
    void op_taken(const OpEvent& event) noexcept;

    /// This thread runs a node of a backward pass.
    void node_begins(const NodeEvent& event) noexcept;
    /// A parameter of this type is there.
    void leaf(const TensorView& variable) noexcept;
    void optimizer_begins(StackId stack) noexcept;
    void optimizer_ends() noexcept;
    void loader_begins() noexcept;
    void loader_ends() noexcept;
    /// This thread has ended steps; `ended`: how many there were so far.
    void steps_are(int64_t ended) noexcept;

    /// What was measured so far. Throws std::bad_alloc.
    SlowRun run(const PlaceFinder& places) const;

    /// After a fork: what the parent has measured is the parent's.
    void begin_child() noexcept;

    static int64_t steady_ns() noexcept;

  private:
    struct Mine;
    Mine& mine() const noexcept;
    void note_begin() noexcept;
    void drop_threads() noexcept;
    bool belongs(const OpEvent& event, const Mine& me) const noexcept;
    bool trains(const Mine& me) const noexcept { return trainer_.load(std::memory_order_relaxed) == &me; }
    SlowThread* thread(Mine& me) noexcept;
    SlowThread* trainers() const noexcept;  ///< null where another thread calls
    void add(Mine& me, SlowCause cause, StackId stack, const OpInfo* op, int64_t ns, int64_t count = 1) noexcept;
    void look_at(Mine& me, const OpEvent& event, int64_t ns) noexcept;
    // slow_gradients.cpp
    void look_for_reads(Mine& me, SlowThread* counts, const OpEvent& event, bool outside, bool told) noexcept;
    void look_at_pass(SlowThread& counts, const OpEvent& event, int64_t began, int64_t ended) noexcept;
    void end_passes(Mine& me, SlowThread& counts) noexcept;
    // slow_loops.cpp
    void look_for_loops(Mine& me, SlowThread& counts, const OpEvent& event, bool shown, int64_t began,
                        int64_t ended) noexcept;
    void end_loop(Mine& me, SlowThread& counts, const SampleLoops::Seen& loop) noexcept;
    void look_between(Mine& me, const OpEvent& event) noexcept;
    void pause(Mine& me, int64_t idle) noexcept;
    void look_for_growth(Mine& me, const OpEvent& event, OpSeq first) noexcept;
    void look_for_float64(Mine& me, const OpEvent& event, int64_t ns) noexcept;
    void see_parameters(const OpEvent& event) noexcept;
    int64_t own() const noexcept { return own_ns_.load(std::memory_order_relaxed); }
    void owned(int64_t ns) noexcept { own_ns_.fetch_add(ns, std::memory_order_relaxed); }

    const Lineage& lineage_;
    StackSource& stacks_;
    const std::atomic<int64_t>& ops_;
    const Clock clock_;
    uint64_t id_ = 0;  ///< no other's in the process
    WatchedSteps steps_;
    std::atomic<int64_t> ended_{0};
    std::atomic<const void*> trainer_{nullptr};  ///< the training thread's Mine
    std::atomic<bool> many_trainers_{false};
    std::atomic<int64_t> own_ns_{0};    ///< that numsan took, in steps that were looked at
    std::atomic<int64_t> first_op_{0};  ///< of this step
    std::atomic<bool> narrow_parameters_{false};
    std::atomic<bool> float64_parameters_{false};
    std::atomic<bool> on_device_{false};
    std::atomic<bool> others_read_{false};  ///< a thread that does not train has read gradients
    std::atomic<SlowThread*> threads_{nullptr};
    std::atomic<int> thread_count_{0};
};

}  // namespace numsan
