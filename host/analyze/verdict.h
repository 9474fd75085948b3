// From ops to findings: births, walk-back, escapes. Works on plain events, so it runs without torch and over made-up streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/analyze/birth.h"
#include "host/analyze/ledger.h"
#include "host/analyze/loss_history.h"
#include "host/core/scanner.h"

namespace numsan {

/// A birth that reached something that matters, with the stack of the place where it did.
struct EscapedBirth {
    Birth birth;
    Severity severity = Severity::Error;
    EscapeInto into = EscapeInto::Output;
    const void* impl = nullptr;  ///< identity of the tensor it reached, for its name
    int64_t step = 0;
    int64_t seq = 0;
    StackId stack = 0;           ///< backward births: where backward() was called
    bool again = false;          ///< the same place was reported before: count it, do not repeat it
};

/// A further tensor that a reported birth reached.
struct Contamination {
    BirthId birth = 0;
    EscapeInto kind = EscapeInto::Parameter;
    const void* impl = nullptr;
    int64_t since_step = 0;
};

/// What the caller must report. Filled under the verdict's lock, used outside it.
struct Outcome {
    std::vector<EscapedBirth> escaped;
    std::vector<Contamination> contaminated;
};

/// [MT] One lock, taken only for events that touch something bad (see interesting()). Names stacks by id only.
class Verdict {
  public:
    /// `scanner` outlives the verdict. `is_loss` tells whether a stack is that of torch making the first gradient of a
    /// backward(); `is_scaler` whether the innermost frame is a loss scaler's. Both are called under the lock, for few events.
    Verdict(const Scanner& scanner, std::function<bool(StackId)> is_loss, std::function<bool(StackId)> is_scaler);

    /// False: nothing about this event can matter (its outputs are clean, nothing it touches is bad). Hot path.
    bool interesting(const OpEvent& event, uint64_t bad_outputs) const noexcept;

    /// One finished op. `bad_outputs`: bit i set when output i holds a value that is not finite (bit 63: any beyond).
    void op(const OpEvent& event, const OpContext& context, uint64_t bad_outputs, const ForwardRecord& forward,
            BirthId* born, Outcome& outcome);

    /// An autograd node is about to run on `event.inputs`.
    void node(const NodeEvent& event, const OpContext& context, Outcome& outcome);

    void optimizer_begin(Outcome& outcome);
    void zero_grad();

    /// The program ends: what is pending is decided.
    void finish(Outcome& outcome);

    struct Counts {
        int64_t births = 0;
        int64_t escaped = 0;
        int64_t absorbed = 0;
    };
    Counts counts() const;

    /// Fork: held over the fork in the parent, so that the child finds it free and whole.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    /// In a forked child: what the parent has to report is the parent's.
    void forget_pending();

  private:
    struct Pending {
        BirthId birth;
        EscapeInto into;
        const void* impl;
        int64_t step;
        int64_t seq;
        StackId stack;
    };
    using Kinds = Ledger::Entry;  ///< births by kind

    void add_kinds(Kinds& into, const Kinds& from);
    Kinds read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad);
    Kinds external(const TensorView& tensor, const OpEvent& event, const OpContext& context, const Health& health);
    BirthId origin(Kind kind, const OpEvent& event, const OpContext& context, const Kinds& before, const Kinds& old,
                   const ForwardRecord& forward);
    Birth& make(Kind kind, const OpEvent& event, const OpContext& context);
    void describe(Birth& birth, const OpEvent& event);
    Phase phase_of(const OpEvent& event, const OpContext& context) const;
    bool unintended_inf(const Kinds& kinds, BirthId& first) const;
    bool intended(BirthId id) const;
    void escape(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                Outcome& outcome);
    void report(BirthId id, Severity severity, EscapeInto into, const void* impl, int64_t step, int64_t seq, StackId stack,
                Outcome& outcome);
    void postpone(const Kinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                  std::vector<Pending>& list);
    void escapes_of(const OpEvent& event, const OpContext& context, const Kinds& before, Outcome& outcome);
    void sweep();

    const Scanner& scanner_;
    const std::function<bool(StackId)> is_loss_;
    const std::function<bool(StackId)> is_scaler_;

    mutable std::mutex mutex_;
    Ledger ledger_;
    LossHistory losses_;
    std::map<BirthId, Birth> births_;
    BirthId last_birth_ = 0;
    std::vector<Pending> gradients_;  ///< decided by the optimizer, the loss scaler or the end
    std::vector<Pending> discarded_;  ///< gradients thrown away unused: a warning at the end
    std::vector<Pending> reads_;      ///< the program looked: a warning at the end if nothing worse comes
    std::set<std::pair<BirthId, const void*>> contaminated_;
    std::set<std::string> reported_places_;
    std::unordered_map<const void*, bool> gradient_storages_;
    int64_t unintended_births_ = 0;
    int64_t escaped_births_ = 0;
};

}  // namespace numsan
