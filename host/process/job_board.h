// What the ranks of a job say to rank 0 of their first error, while the job runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/finding/run_summary.h"
#include "host/report/rank_error.h"
#include "host/stacks/job_store.h"

namespace numsan {

/// Nothing is done in a healthy run: the first error of a rank that no other rank sent is left in the store, and rank 0
/// looks there once it has an error itself, which in most jobs it has received. [MT] but for use(). What is left may
/// be of another version, or damaged. May throw std::bad_alloc.
class JobBoard {
  public:
    JobBoard();
    ~JobBoard();
    JobBoard(const JobBoard&) = delete;
    JobBoard& operator=(const JobBoard&) = delete;

    /// Before the first finding.
    void use(const JobStore& store, void (*on_own_thread)()) noexcept;

    /// This process has reported a finding. In host memory it has not gone on since: other ranks have not received the
    /// value, or wait for this one. `report`: its file, as people see it; empty: none.
    void found(const Finding& finding, const RunSummary& run, const std::string& report);

    /// Something is to be looked for, or could not be left. `last`: nothing follows for a while.
    bool is_due(bool last) const noexcept;
    /// Does it: at the end of a step, in which all ranks have met, and when the run may end (`last`). What is to be
    /// said of the job; empty: nothing new.
    std::string attend(const RunSummary& run, bool last);

    /// The job_document() of rank 0: what all ranks have left, first those that were first, the others by step and
    /// rank. Empty: of another rank, no rank has left anything, or it is as it was when it was last taken.
    std::string take_document(const RunSummary& run);

    /// A forked child of a process without a rank may be one; that of a rank (`of_rank`) works for it.
    void begin_child(bool of_rank) noexcept;

  private:
    struct State;
    State& state() const noexcept { return *state_.load(); }
    void leave_own(const RunSummary& run);

    JobStore store_;
    void (*on_own_thread_)() = nullptr;
    std::atomic<State*> state_;  ///< owns those before it: of a parent, one of whose threads may have been inside
};

}  // namespace numsan
