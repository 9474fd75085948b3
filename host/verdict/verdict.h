// From ops to findings: births, walk-back, escapes. Works on plain events, so it runs without torch and over made-up
// streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "host/base/output_set.h"
#include "host/base/scanner.h"
#include "host/track/ledger.h"
#include "host/track/loss_history.h"
#include "host/track/op_site.h"
#include "host/track/scaler_history.h"
#include "host/verdict/births.h"
#include "host/verdict/finite_results.h"
#include "host/verdict/pending.h"

namespace numsan {

/// A birth that reached something that matters, with the stack of the place where it did.
struct EscapedBirth {
    Birth birth;
    Severity severity = Severity::Error;
    EscapeInto into = EscapeInto::Output;
    const void* impl = nullptr;  ///< identity of the tensor it reached, for its name
    int64_t step = 0;
    int64_t seq = 0;
    StackId stack = 0;   ///< backward births: where backward() was called
    std::string place;   ///< op, stack, node and mechanism: what makes two births the same to a reader
    bool again = false;  ///< the same place was reported before: count it, do not repeat it
};

/// A further tensor that a reported birth reached.
struct Contamination {
    BirthId birth = 0;
    EscapeInto kind = EscapeInto::Parameter;
    const void* impl = nullptr;
    int64_t since_step = 0;
};

/// A bad value was written in place into a tensor that is neither parameter nor gradient.
struct StateWrite {
    BirthId birth = 0;
    const void* impl = nullptr;
    const void* storage = nullptr;  ///< must still hold it when the name is looked up: addresses are used again
    int64_t step = 0;
    int64_t seq = 0;
    StackId stack = 0;
};

/// A tensor that the program keeps: a buffer, a moment, an averaged parameter.
struct KeptTensor {
    const void* impl = nullptr;
    const void* storage = nullptr;  ///< where its values lie; a device's goes by the name that events give it
    EscapeInto kind = EscapeInto::Buffer;
};

/// What the caller must report. Filled under the verdict's lock, used outside it.
struct Outcome {
    std::vector<EscapedBirth> escaped;
    std::vector<Contamination> contaminated;
};

/// The op that makes the gradient backward() starts with, from the value it starts from. Other calls look the same.
bool is_root(const OpEvent& event);

/// [MT] One lock, taken only for events that touch something bad (see interesting()). Names stacks by id only.
class Verdict {
  public:
    /// What it is made with outlives the verdict.
    Verdict(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage,
            const ParameterHistory& parameters);

    /// False: nothing about this event can matter (its outputs are clean, nothing it touches is bad). Hot path.
    bool interesting(const OpEvent& event, OutputSet bad_outputs) const noexcept {
        if (bad_outputs.any() || (ledger_.may_hold_any() && touches_held(event))) return true;
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
    Ledger::Entry births_in(const TensorView& tensor);
    void adopt(const TensorView& tensor, const Ledger::Entry& births);

    /// Whether it is known which births the tensor's storage may hold.
    bool knows(const TensorView& tensor);
    /// Whether it does hold one, as far as ops show.
    bool is_sure_of(const TensorView& tensor);

    /// One finished op. `bad_outputs`: those that hold a value that is not finite.
    void op(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
            BirthId* born, Outcome& outcome);

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

    struct Counts {
        int64_t births = 0;
        int64_t escaped = 0;
        int64_t absorbed = 0;
    };
    Counts counts() const;

    /// Fork: held over the fork in the parent, so that the child finds it free and whole.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    /// Steps of magnitude history that a finding has at most; before the first op.
    void set_history(size_t steps) { history_ = steps; }
    /// In a forked child: what the parent has to report is the parent's.
    void forget_pending();
    /// See Births. Before the first op.
    void set_exchange(BirthExchange* hand_over) { births_.set_exchange(hand_over); }

  private:
    using Kinds = Births::Kinds;

    bool touches_held(const OpEvent& event) const noexcept;
    bool interesting_by_class(const OpEvent& event) const noexcept;
    Kinds handed_on(const OpEvent& event, int32_t index);
    Kinds left_beside(const OpEvent& event, int32_t index);
    Kinds read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad);
    void write_outputs(const OpEvent& event, const OpContext& context, OutputSet bad_outputs,
                       const ForwardRecord& forward, const Kinds& before, BirthId* born, Outcome& outcome);
    double sent(const TensorView& operand) const;
    static void note_sender(const OpEvent& event, int32_t index, Ledger::Received& received);
    void receive(const OpEvent& event, const OpContext& context, const Kinds& before);
    void sweep();
    bool is_gradient(const void* storage) const noexcept { return (lineage_.flags(storage) & Lineage::kGradient) != 0; }
    void note_state_write(const Kinds& kinds, const TensorView& tensor, const OpContext& context);
    void scaler_looks(const OpEvent& event);
    void scale_changes(const OpEvent& event, Outcome& outcome);
    void give_up(const void* scaler, const std::string& why, Outcome& outcome, bool all = false);
    void end_scalers(Outcome& outcome);
    bool comes_at_any_scale(const Birth& birth) const;
    void loss_begins(const OpEvent& event, const OpContext& context, const Kinds& before, Outcome& outcome);
    void escape(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                Outcome& outcome);
    /// by value: `escape` may be in a list that is cleared
    void report(PendingEscape escape, Severity severity, Outcome& outcome);
    void contaminate(const Birth& birth, EscapeInto into, const void* impl, int64_t step, Outcome& outcome);
    void decide(const PendingStore::List& escapes, Severity severity, Outcome& outcome);
    void decide_at_end(const PendingPolicy& policy, bool failed, Outcome& outcome);
    void decide_gradients(Outcome& outcome);
    void follow_gradients(const OpEvent& event, const OpContext& context, const TensorView& output, const Kinds& now);
    void read_gradients(const OpEvent& event, const OpContext& context);
    void take_gradients(const TensorView& leaf, Outcome& outcome);
    void report_gradient_of(const Birth& birth, Severity severity, Outcome& outcome);
    Kinds unseen_update(const TensorView& leaf) const;
    template <class Which>
    void discard_gradients(Which&& which);
    void postpone(BirthId id, EscapeInto into, const void* impl, const OpContext& context, PendingReason reason);
    void postpone(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                  PendingReason reason);
    PendingStore::List& gradients() { return pending_.of(PendingReason::Gradient); }
    const PendingStore::List& gradients() const { return pending_.of(PendingReason::Gradient); }
    void escapes_of(const OpEvent& event, const OpContext& context, const Kinds& before, Outcome& outcome);
    void follow_check(const OpEvent& event, const OpContext& context, const Kinds& before);
    void answered(const OpEvent& event, const OpContext& context);
    void end_checks(bool failed, Outcome& outcome);

    const Scanner& scanner_;
    const StackFacts& stacks_;
    const Lineage& lineage_;
    const ParameterHistory& parameters_;
    mutable std::mutex mutex_;
    Ledger ledger_;
    LossHistory losses_;
    std::map<const void*, ScalerHistory> scalers_;  ///< by where the scale lies
    std::map<const void*, bool> looks_;             ///< of scalers, by where they note it: whether something was bad
    bool scaler_seen_ = false;
    Births births_;
    PendingStore pending_;
    std::atomic<bool> waiting_{false};  ///< whether a gradient may be pending
    std::set<int64_t> checked_losses_;  ///< numbers of the ops that such a check of a loss began with
    std::atomic<bool> met_bad_{false};  ///< something was not finite: a number the program reads may show it
    FiniteResults finite_;
    int64_t last_step_ = 0;
    bool stepped_ = false;  ///< an optimizer has begun a step
    size_t history_ = 32;
    std::set<std::tuple<BirthId, EscapeInto, const void*>> contaminated_;
    std::set<std::string> reported_places_;
    std::vector<StateWrite> state_writes_;
    std::map<const void*, Kinds> unread_births_;  ///< within a look back: births that results which are gone go back to
    int64_t loss_parameter_read_ = -1;  ///< last forward op that read a parameter before the last backward() began
    int64_t loss_seq_ = -1;
    int64_t escaped_births_ = 0;
    int steps_to_look_ = 0;  ///< ends of optimizer steps at which what the program keeps is still to be looked up
};

}  // namespace numsan
