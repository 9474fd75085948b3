// Bad gradients that reached a leaf: whether an update takes them up, or the program replaces, cures or drops them.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <unordered_set>

#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/birth/external_births.h"
#include "host/track/ledger.h"
#include "host/track/parameter_history.h"
#include "host/verdict/escapes.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe but for any_wait(): the verdict's lock protects it.
class LeafGradients {
  public:
    /// All outlive this.
    LeafGradients(const Scanner& scanner, const ParameterHistory& parameters, Ledger& ledger, BirthStore& births,
                  ExternalBirths& external, PendingStore& pending, Escapes& escapes)
        : scanner_(scanner),
          parameters_(parameters),
          ledger_(ledger),
          births_(births),
          external_(external),
          pending_(pending),
          waiting_(pending.of(PendingReason::Gradient)),
          escapes_(escapes) {}

    /// [MT] Whether a gradient may be pending.
    bool any_wait() const noexcept { return any_wait_.load(std::memory_order_relaxed); }

    /// Gradients are about to reach a leaf. `unseen`: no op may have shown them, so each is looked at.
    void arrive(const NodeEvent& event, const OpContext& context, bool unseen);

    /// False: follow(), read() and take() have nothing to do for this op.
    bool may_concern(const OpEvent& event) const;

    /// A gradient is added to what its leaf has, or copied there: what is bad in it goes on, and lies there now.
    void follow(const OpEvent& event, const OpContext& context, const TensorView& output, const BirthKinds& now);

    /// An optimizer computes something of a bad gradient: more than changing the gradient itself, which may cure it.
    void read(const OpEvent& event, const OpContext& context);

    /// A leaf's new values are bad, or may be. What an optimizer has read of its gradient is in them; only that: it is
    /// one of several optimizers, and other leaves may be guarded.
    void take(const TensorView& leaf, Outcome& outcome);

    /// A parameter is bad that no op was seen to make so, and its last gradient was: a kernel that was not announced
    /// made the update.
    BirthKinds unseen_update(const TensorView& leaf) const;

    /// An optimizer was asked to let go of its own leaves' gradients: which they are is not said. So none is dropped
    /// until the next one comes, and what another optimizer reads before counts.
    void zero();

    /// Whether at the end of the run there are gradients of which the program may have let go.
    bool undecided() const;
    /// The leaves that are alive, and where the gradient of each lies now: any other is not what they have.
    void keep(const std::map<const void*, std::set<const void*>>& leaves);
    /// The end of the run: reports what an optimizer would have been given next. `stepped`: one has made a step.
    void end(bool stepped, Outcome& outcome);

  private:
    bool is_bad(const TensorView& gradient) const;
    void learn_keys(const PendingEscape& gradient);
    /// False: no gradient that waits has this tensor, memory or leaf. Else one may have it.
    bool may_wait(const void* key) const { return keys_.count(key) != 0; }
    void replace(const TensorView& leaf, const OpContext& context);
    template <class Which>
    void discard(Which&& which);

    const Scanner& scanner_;
    const ParameterHistory& parameters_;
    Ledger& ledger_;
    BirthStore& births_;
    ExternalBirths& external_;
    PendingStore& pending_;
    PendingStore::List& waiting_;  ///< those that wait for an update
    Escapes& escapes_;
    std::atomic<bool> any_wait_{false};
    /// Of gradients that wait, or have waited since none did: tensor, memory and leaf. Thousands may wait, and each op
    /// of a run that has gone bad asks.
    std::unordered_set<const void*> keys_;
    int64_t cleaned_step_ = -1;
};

}  // namespace numsan
