// Makes and keeps births: decides what a bad value goes back to, measures it, says how it came about.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "host/base/scanner.h"
#include "host/cause/birth.h"
#include "host/track/forward_record.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/track/loss_history.h"
#include "host/track/op_context.h"
#include "host/track/parameter_history.h"
#include "host/track/stack_facts.h"
#include "host/verdict/birth_exchange.h"

namespace numsan {

inline constexpr Kind kNonFiniteKinds[] = {kNaN, kPosInf, kNegInf};

inline bool scannable(const TensorView& t) { return (t.flags & kScannable) != 0; }
inline bool covers_storage(const TensorView& t) {
    return t.numel * static_cast<int64_t>(info(t.dtype).element_bytes()) >= t.storage_bytes;
}

/// True when the op overwrote this operand: its old values are gone.
bool written_by(const OpEvent& event, const TensorView& input);

/// Whether a collective sends this operand to other ranks. One with operands of two kinds fills the first, whatever was
/// in it, and sends the others; one that works in place sends what it fills, unless it only receives, or may do so.
bool sends(const OpEvent& event, const TensorView& input);

/// The optimizer's own arithmetic, not the closure it calls.
bool updates(const OpEvent& event, const OpContext& context);

/// True for set_: the tensor takes over a storage that others filled, a file or another process.
bool adopts_storage(const OpEvent& event);

/// Not thread-safe: the verdict's lock protects it. What it is made with outlives it.
class Births {
  public:
    using Kinds = Ledger::Entry;  ///< births by kind

    Births(const Scanner& scanner, const StackFacts& stacks, Ledger& ledger, const LossHistory& losses,
           const Lineage& lineage, const ParameterHistory& parameters)
        : scanner_(scanner),
          stacks_(stacks),
          ledger_(ledger),
          losses_(losses),
          lineage_(lineage),
          parameters_(parameters) {}

    Birth* find(BirthId id);
    const Birth* find(BirthId id) const;
    bool intended(BirthId id) const;

    /// Adds what is in `from`. An unintended origin outranks an intended one; among equals one that is surely there
    /// another, and then the earlier wins.
    void add_kinds(Kinds& into, const Kinds& from) const;

    /// A bad value that no op was seen to make: it was there before, or it came from outside.
    Kinds external(const TensorView& tensor, const OpEvent& event, const OpContext& context, const Health& health);

    /// The birth that one kind of bad value in the output goes back to: one that `before` (what the op read) or `old`
    /// (what it wrote over) names, or a new one.
    BirthId origin(Kind kind, const OpEvent& event, const OpContext& context, const Kinds& before, const Kinds& old,
                   const ForwardRecord& forward);

    /// A bad gradient, of which nothing is known, is about to reach its leaf right after a compiled region's node.
    Kinds of_region(const NodeEvent& event, const TensorView& gradient, const OpContext& context);

    /// The births that op number `seq` made, by kind.
    Kinds made_by(int64_t seq) const;

    /// The bad kinds that the op must have made of its operands, all of which are here; none when they do not say so.
    KindSet certain(const OpEvent& event) const;

    /// A birth without a value that is not finite: operands that are not zero, a result (output `index`) that is.
    BirthId flushed(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                    Mechanism mechanism, std::string evidence);
    /// Another one: its result is close to the largest number of its type, or was cut to it.
    BirthId near_overflow(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                          Mechanism mechanism, std::string evidence);

    /// For tensors that go to another process, or came from one. None unless set; outlives this.
    void set_exchange(BirthExchange* hand_over) { exchange_ = hand_over; }
    /// In a forked child: births so far are the parent's too.
    void begin_child() { inherited_ = last_; }
    /// Leaves word of the births that the tensor's values go back to.
    void leave_notes(const Kinds& kinds, const TensorView& tensor) const;

    /// An op reads it.
    void used(BirthId id, const OpEvent& event, const OpContext& context);

    /// It is read as a parameter now. What was made of data, and not by training, is that parameter's initial value.
    void becomes_initial_value(BirthId id);

    /// The birth that the value backward() starts from holds, 0 when that is finite.
    void set_bad_loss(BirthId id) { bad_loss_ = id; }
    BirthId bad_loss() const { return bad_loss_; }

    /// This birth has reached a parameter.
    void set_poisoned(BirthId id) { poisoned_ = id; }

    /// This birth escaped, and it was a divergence: what overflows after it goes back to it.
    void set_diverged(BirthId id) { diverged_ = id; }

    /// Drops births that nothing in `used` or the ledger refers to, so that memory stays flat over a long run.
    void sweep(std::set<BirthId> used);
    bool full() const { return births_.size() >= kMaxBirths; }

    int64_t made() const { return made_; }  ///< unintended ones

  private:
    static constexpr size_t kMaxBirths = 1 << 14;

    Birth& make(KindSet kind, const OpEvent& event, const OpContext& context);
    void came_by_collective(Birth& birth, const Ledger::Received& received, Kind kind, const TensorView& tensor,
                            int64_t first_bad);
    void describe(Birth& birth, const OpEvent& event);
    void measure_into(Birth& birth, const OpEvent& event, const OpContext& context, const ForwardRecord& forward);
    bool holds(const TensorView& tensor, Kind kind) const;
    BirthId recomputed(const Birth& birth, const OpEvent& event, const OpContext& context);
    bool from_compiled(const OpEvent& event, const OpContext& context, const TensorView& t) const;
    BirthId before_region(const OpContext& context) const;
    BirthId handed_over(Kind kind, const OpEvent& event, const OpContext& context);
    Phase phase_of(const OpEvent& event, const OpContext& context) const;
    bool of_gradients(const OpEvent& event) const;
    bool unintended_inf(const Kinds& kinds, BirthId& first) const;

    const Scanner& scanner_;
    const StackFacts& stacks_;
    Ledger& ledger_;
    const LossHistory& losses_;
    const Lineage& lineage_;
    const ParameterHistory& parameters_;
    BirthExchange* exchange_ = nullptr;
    BirthId inherited_ = 0;  ///< births up to this one were made before the fork
    std::map<BirthId, Birth> births_;
    BirthId last_ = 0;
    BirthId bad_loss_ = 0;
    BirthId diverged_ = 0;
    BirthId poisoned_ = 0;
    int64_t made_ = 0;
};

}  // namespace numsan
