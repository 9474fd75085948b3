// From ops to findings: births, walk-back, escapes. Works on plain events, so it runs without torch and over made-up
// streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/base/output_set.h"
#include "host/base/scanner.h"
#include "host/birth/birth_facts.h"
#include "host/birth/birth_store.h"
#include "host/birth/births.h"
#include "host/birth/collective_results.h"
#include "host/birth/copied_bits.h"
#include "host/birth/exchanged_births.h"
#include "host/birth/external_births.h"
#include "host/birth/reported_births.h"
#include "host/birth/step_phase.h"
#include "host/track/ledger.h"
#include "host/track/loss_history.h"
#include "host/verdict/absorbed_births.h"
#include "host/verdict/escapes.h"
#include "host/verdict/finite_results.h"
#include "host/verdict/kept_state.h"
#include "host/verdict/leaf_gradients.h"
#include "host/verdict/loss_scalers.h"
#include "host/verdict/loss_start.h"
#include "host/verdict/outcome.h"
#include "host/verdict/pending.h"
#include "host/verdict/unread_results.h"
#include "host/verdict/value_checks.h"

namespace numsan {

/// [MT] One lock, taken only for events that touch something bad (see interesting()). Names stacks by id only.
class Verdict {
  public:
    /// What it is made with outlives the verdict.
    Verdict(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage,
            const ParameterHistory& parameters);

    /// False: nothing about this event can matter (its outputs are clean, nothing it touches is bad). Hot path.
    bool interesting(const OpEvent& event, OutputSet bad_outputs) const noexcept {
        if (bad_outputs.any() || (ledger_.may_hold_any() && (checks_.follows() || touches_held(event)))) return true;
        switch (event.op->op_class) {
            case OpClass::Allocation:
            case OpClass::HostRead:
            case OpClass::Collective:
            case OpClass::LossScale: return interesting_by_class(event);
            default: return event.input_count == 1 && is_root(event);
        }
    }

    /// Something wrote the tensor's storage that was not seen.
    void forget(const TensorView& tensor);

    /// Outputs of an op that were not read; those that are scannable are passed over. What its operands may hold
    /// they may hold, and the infinity that the program writes there. It is sure only where the op keeps it
    /// (OpTraits::kept): a clamp may have cured it.
    void unread(const OpEvent& event, const OpContext& context, OutputSet outputs, Outcome& outcome);

    /// What its storage holds now; empty when nothing is known. adopt() says the same of another one later.
    Ledger::Contents contents_of(const TensorView& tensor);
    void adopt(const TensorView& tensor, const Ledger::Contents& contents);
    /// Its storage holds these births.
    void holds(const TensorView& tensor, const Ledger::Entry& births);

    /// Whether it is known which births the tensor's storage may hold.
    bool knows(const TensorView& tensor);
    /// Whether it does hold one, as far as ops show.
    bool is_sure_of(const TensorView& tensor);

    /// One finished op. `bad_outputs`: those that hold a value that is not finite.
    void op(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
            BirthId* born, Outcome& outcome);

    /// The short way of an op that only hands on what is reported, as most do in a run that has gone bad: no facts of
    /// autograd's, no exact pass. `ranges`: of the first `range_count` outputs. False: it is not one of them, and
    /// nothing was done.
    bool repeat(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const Range* ranges,
                int32_t range_count, BirthId* born, Outcome& outcome);

    /// Within a look back (begin, ops of the past in their order, end). An op whose result is gone, but which must have
    /// made bad values: out of the operands it is shown with, or, with `implied`, by what became of the result. False:
    /// nothing says so.
    bool presume(const OpEvent& event, const OpContext& context, const ForwardRecord& forward, KindSet implied,
                 BirthId* born);
    /// Whether the operands alone say so.
    bool is_certain(const OpEvent& event);
    void end_look_back();

    /// An op that threw. What was not finite in its operands may be why, and the program has met it.
    void op_failed(const OpEvent& event, const OpContext& context);

    /// An autograd node is about to run on `event.inputs`.
    void node(const NodeEvent& event, const OpContext& context);

    void optimizer_begin(Outcome& outcome);

    /// Whether at the end of the run there are gradients of which the program may have let go.
    bool has_undecided_gradients();
    /// The leaves that are alive, and where the gradient of each lies now: any other is not what they have.
    void keep_gradients(const std::map<const void*, std::set<const void*>>& leaves);

    /// Tensors that were written in place with bad values and may be state of the program: only their names show it.
    /// Takes them.
    std::vector<StateWrite> take_state_writes();
    /// One of them is: a buffer, a moment, an averaged parameter.
    void confirm(const StateWrite& write, EscapeInto into, Outcome& outcome);
    void zero_grad();
    /// The program says what a step's loss was.
    void tell_loss(double value);

    /// An optimizer has ended a step. True: what the program keeps should be looked up now for find_contaminated(), as
    /// a finding was made in this step or the one before.
    bool optimizer_end();
    /// Whether a finding may have reached what the program keeps: it is looked up once more at the end of the run.
    bool may_have_contaminated() const;
    /// Which of them births that escaped have reached. One that shares its storage with another is passed over: the
    /// ledger does not know which of them is bad.
    void find_contaminated(const std::vector<KeptTensor>& kept, Outcome& outcome);

    /// The program ends, and has `failed`: what is pending is decided.
    void finish(bool failed, Outcome& outcome);

    /// The same, after finish(): what has escaped nowhere, where that is to be reported. `last`: no more is decided.
    void report_absorbed(bool last, Outcome& outcome);

    struct Counts {
        int64_t births = 0;
        int64_t escaped = 0;
        int64_t absorbed = 0;
        int64_t scaler_skips = 0;
        std::vector<int64_t> skipped_steps;
    };
    Counts counts() const;

    /// What gave way as there was no more room for it, by its name in the report; zeros too.
    std::map<std::string, int64_t> forgotten() const;

    /// Fork: held over the fork in the parent, so that the child finds it free and whole.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    /// Steps of magnitude history that a finding has at most; before the first op.
    void set_history(size_t steps) { escapes_.set_history(steps); }
    /// What knows the collectives of this process; before the first op. It outlives this.
    void use(const CollectiveLog& collectives) { escapes_.use(collectives); }
    /// Births that escape nowhere are reported, too; before the first op.
    void set_strict() { absorbed_.emplace(scanner_, ledger_, store_, pending_, escapes_, scalers_); }
    /// Fills Outcome::born from now on; before the first op.
    void show_births() { shows_births_ = true; }
    /// One of them; nothing where it was dropped.
    std::optional<Birth> birth(BirthId id) const;
    /// In a forked child: what the parent has to report is the parent's.
    void forget_pending();
    /// What knows the kernels that ops launched. Before the first op.
    void set_launches_of(LaunchesOf launches_of) { births_.set_launches_of(launches_of); }
    /// See ExchangedBirths. Before the first op.
    void set_exchange(BirthExchange* hand_over) { exchanged_.set_exchange(hand_over); }

  private:
    bool touches_held(const OpEvent& event) const noexcept;
    bool interesting_by_class(const OpEvent& event) const noexcept;
    void judge(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
               BirthId* born, Outcome& outcome);
    BirthKinds read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad);
    void write_outputs(const OpEvent& event, const OpContext& context, OutputSet bad_outputs,
                       const ForwardRecord& forward, const BirthKinds& before, BirthId* born, Outcome& outcome);
    void wrote_in_place(const OpEvent& event, const OpContext& context, const TensorView& output, const BirthKinds& now,
                        Outcome& outcome);
    void sweep();
    void begin_step(const OpContext& context);
    std::optional<ValueChecks::Question> look_at_check(const OpEvent& event, const OpContext& context);
    BirthKinds bad_operands(const OpEvent& event);
    void escapes_of(const OpEvent& event, const OpContext& context, const BirthKinds& before, Outcome& outcome);
    void decide_at_end(const PendingPolicy& policy, bool failed, Outcome& outcome);

    const Scanner& scanner_;
    const StackFacts& stacks_;
    const Lineage& lineage_;
    mutable std::mutex mutex_;
    Ledger ledger_;
    LossHistory losses_;
    BirthStore store_;
    StepPhase phase_;
    BirthFacts facts_;
    ExchangedBirths exchanged_;
    ExternalBirths external_;
    Births births_;
    ReportedBirths reported_;
    CopiedBits bits_;
    PendingStore pending_;
    FiniteResults finite_;
    UnreadResults unread_;
    CollectiveResults collectives_;
    Escapes escapes_;
    LossStart loss_start_;
    LeafGradients gradients_;
    LossScalers scalers_;
    ValueChecks checks_;
    KeptState kept_;
    std::optional<AbsorbedBirths> absorbed_;
    std::atomic<bool> met_bad_{false};  ///< something was not finite: a number the program reads may show it
    int64_t last_step_ = 0;
    bool shows_births_ = false;
    bool stepped_ = false;  ///< an optimizer has begun a step
    /// Within a look back: births that results which are no longer there go back to.
    std::map<const void*, BirthKinds> unavailable_;
};

}  // namespace numsan
