// What the ranks of a job say to rank 0 of their first error, while the job runs.
#pragma once

#include <atomic>
#include <cstdint>
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

    /// Before the first finding.
    void use(const JobStore& store, void (*on_own_thread)()) noexcept;

    /// This process has reported a finding, and has not gone on since: other ranks have not received the value, or wait
    /// for this one. `report`: its file, as people see it; empty: none.
    void found(const Finding& finding, const RunSummary& run, const std::string& report);

    /// Something is to be looked for, or could not be left.
    bool is_due() const noexcept { return state().due.load(std::memory_order_relaxed); }
    /// Does it: at the end of a step, in which all ranks have met, and at the end of the run (`last`). What is to be
    /// said of the job; empty: nothing.
    std::string attend(const RunSummary& run, bool last);

    /// The job_document() of rank 0: the first errors of all ranks by step and rank. Empty: of another rank, or no rank
    /// has left anything.
    std::string document(const RunSummary& run) const;

    /// The run ends: nothing is left any more, as rank 0 and its store may have ended before.
    void end() noexcept { ends_.store(true); }

    /// A forked child may be a rank of its own, or work for the rank that it was forked from.
    void begin_child() noexcept;

  private:
    struct State {
        std::atomic<bool> due{false};
        std::mutex mutex;              ///< of what follows; not held while the store is asked
        std::optional<RankError> own;  ///< this rank's
        bool is_left = false;          ///< others can see it
        int tries_left = 0;            ///< to leave it, or to look
        std::vector<RankError> others;
        size_t taken_up = 0;  ///< texts of the store

        std::vector<RankError> in_order() const;
        std::string said_of_first(const RunSummary& run) const;
        bool take_up(const std::vector<std::string>& texts);
    };
    State& state() const noexcept { return *state_.load(); }
    void leave_own();

    JobStore store_;
    void (*on_own_thread_)() = nullptr;
    std::atomic<bool> ends_{false};
    std::atomic<State*> state_;  ///< never freed: in a forked child another thread of the parent's may be inside
};

}  // namespace numsan
