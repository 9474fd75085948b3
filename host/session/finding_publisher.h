// Takes what the verdict found to the reporter, with the names of what the program keeps.
#pragma once

#include <atomic>
#include <optional>

#include "host/base/adapter_abi.h"
#include "host/process/job_board.h"
#include "host/session/reporter.h"
#include "host/session/run_counts.h"
#include "host/stacks/process_rank.h"
#include "host/stacks/stack_source.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// Shows a finding to the tool that watches the program. May throw std::bad_alloc.
using MarkFinding = void (*)(const Finding& finding);

/// [MT] Called under none of numsan's locks: names may need the interpreter's. All may throw std::bad_alloc but
/// what is noexcept.
class FindingPublisher {
  public:
    /// All outlive this.
    FindingPublisher(Verdict& verdict, StackSource& stacks, Reporter& reporter, const RunCounts& counts)
        : verdict_(verdict), stacks_(stacks), reporter_(reporter), counts_(counts) {}

    void use(const AdapterApi& adapter) noexcept { adapter_.store(&adapter, std::memory_order_release); }
    /// What knows the rank where the environment does not say it; before the first event.
    void use(AskRank ask) noexcept { ask_rank_ = ask; }
    /// What shows each new finding to other tools; before the first event.
    void use(MarkFinding mark) noexcept { mark_.store(mark, std::memory_order_relaxed); }
    /// The tool may be gone.
    void end_marks() noexcept { mark_.store(nullptr, std::memory_order_relaxed); }
    /// Where the ranks of a job leave their first errors; before the first event, and after the stacks know what is
    /// called on threads of their own.
    void use(const JobStore& store) noexcept { job_.use(store, stacks_.on_own_thread); }

    /// True: there is a finding that was not known before. `known`: the look-up of names that was just made.
    bool publish(const Outcome& outcome, const LiveNames* known = nullptr);
    /// Bad values were written into tensors that may be buffers, moments or averages; or findings may have reached what
    /// the program keeps (`kept`). Asks for names, a few times in a run and at its end (`last`). As publish().
    bool name_state(bool kept, bool last = false);
    /// The program ends, and has `failed`. `rests`: its threads do not train any more. `last`: this is not called
    /// again. As publish().
    bool decide_pending(bool failed, bool rests, bool last);
    /// An optimizer's step has ended: asks for the rank, the first time, while there is a process group, as many
    /// programs take it down before they end; and says what other ranks have left for this one.
    void step_ended() noexcept;
    /// The tool's locks may be held by threads that the child does not have.
    void begin_child() noexcept {
        end_marks();
        job_.begin_child(reporter_.knows_rank());
    }
    /// What is alive now, by name. Slow.
    LiveNames names();

  private:
    static constexpr int kMaxLookUps = 32;

    /// The environment says what a launcher started; a program that numbered its processes itself is asked, seldom.
    void learn_rank() noexcept;
    void show(const std::vector<BirthId>& births);
    void tell_job(const Outcome& outcome);
    void attend_job(bool last);
    TensorReader reader() const noexcept;
    bool in_generated(const Outcome& outcome) const;
    std::optional<LiveNames> ask_for_gradients(bool rests);

    Verdict& verdict_;
    StackSource& stacks_;
    Reporter& reporter_;
    const RunCounts& counts_;
    std::atomic<const AdapterApi*> adapter_{nullptr};
    AskRank ask_rank_ = nullptr;
    std::atomic<MarkFinding> mark_{nullptr};
    JobBoard job_;
    std::atomic<bool> asked_rank_in_step_{false};
    std::atomic<int> look_ups_{0};  ///< of names that no new finding needs: of state, of what a finding contaminated
};

}  // namespace numsan
