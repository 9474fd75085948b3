// Makes and keeps births: decides what a bad value goes back to, measures it, says how it came about.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "host/base/ids.h"
#include "host/base/scanner.h"
#include "host/birth/birth_facts.h"
#include "host/birth/birth_store.h"
#include "host/birth/exchanged_births.h"
#include "host/birth/external_births.h"
#include "host/birth/step_phase.h"
#include "host/cause/birth.h"
#include "host/ops/operands.h"
#include "host/track/forward_record.h"
#include "host/track/ledger.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it. What it is made with outlives it.
class Births {
  public:
    Births(const Scanner& scanner, const StackFacts& stacks, Ledger& ledger, const LossHistory& losses,
           const Lineage& lineage, const ParameterHistory& parameters)
        : scanner_(scanner),
          stacks_(stacks),
          ledger_(ledger),
          store_(stacks.source()),
          phase_(stacks, lineage),
          facts_(scanner, losses, lineage, parameters),
          exchanged_(scanner, store_),
          external_(scanner, stacks, ledger, store_, facts_, phase_) {}

    // Of BirthStore, ExternalBirths and ExchangedBirths.
    Birth* find(BirthId id) { return store_.find(id); }
    const Birth* find(BirthId id) const { return store_.find(id); }
    bool intended(BirthId id) const { return store_.intended(id); }
    void add_kinds(BirthKinds& into, const BirthKinds& from) const { store_.add_kinds(into, from); }
    BirthKinds made_by(OpSeq seq) const { return store_.made_by(seq); }
    bool full() const { return store_.full(); }
    void sweep(
        std::set<BirthId> used, const std::function<void(const Birth&)>& dropped = [](const Birth&) {}) {
        store_.sweep(std::move(used), ledger_, dropped);
    }
    const BirthStore::Births& all() const { return store_.all(); }
    bool inherited(BirthId id) const { return store_.inherited(id); }
    BirthId last() const { return store_.last(); }
    int64_t made() const { return store_.made(); }
    int64_t forgotten() const { return store_.forgotten(); }
    void begin_child() { store_.begin_child(); }
    BirthId bad_loss() const { return store_.bad_loss; }
    void set_bad_loss(BirthId id) { store_.bad_loss = id; }
    void set_poisoned(BirthId id) { store_.poisoned = id; }
    BirthId diverged() const { return store_.diverged; }
    void set_diverged(BirthId id) { store_.diverged = id; }
    /// Training had diverged before this birth, and that was reported.
    bool follows_divergence(BirthId id) const { return id > store_.diverged && find(store_.diverged) != nullptr; }
    BirthKinds external(const TensorView& tensor, const OpEvent& event, const OpContext& context,
                        const Health& health) {
        return external_.made(tensor, event, context, health, health.kinds());
    }
    /// Of storage of which other kinds are known: a collective may have brought more, elsewhere in it.
    BirthKinds received(KindSet kinds, const TensorView& tensor, const OpEvent& event, const OpContext& context) {
        return ledger_.received(tensor) == nullptr
                   ? BirthKinds{}
                   : external_.made(tensor, event, context, scanner_.health(tensor), kinds);
    }
    BirthKinds of_region(const NodeEvent& event, const TensorView& gradient, const OpContext& context) {
        return external_.of_region(event, gradient, context);
    }
    void set_exchange(BirthExchange* exchange) { exchanged_.set_exchange(exchange); }
    void leave_notes(const BirthKinds& kinds, const TensorView& tensor) const { exchanged_.leave_notes(kinds, tensor); }

    struct Origin {
        BirthId id = 0;
        bool intended = false;  ///< the program wrote it there on purpose
    };
    /// The birth that one kind of bad value in the output goes back to: one that `before` (what the op read) or `old`
    /// (what it wrote over) names, or a new one. A birth that a root is taken of is marked so.
    Origin origin(Kind kind, const OpEvent& event, const OpContext& context, const BirthKinds& before,
                  const BirthKinds& old, const ForwardRecord& forward);

    /// The bad kinds that the op must have made of its operands, all of which are here; none when they do not say so.
    KindSet certain(const OpEvent& event) const;

    /// A birth without a value that is not finite: operands that are not zero, a result (output `index`) that is.
    BirthId flushed(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                    Mechanism mechanism, std::string evidence);
    /// Another one: its result is close to the largest number of its type, or was cut to it.
    BirthId near_overflow(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                          Mechanism mechanism, std::string evidence);

    /// An op reads it.
    void used(BirthId id, const OpEvent& event, const OpContext& context);

    /// It is read as a parameter now. What was made of data, and not by training, is that parameter's initial value.
    void becomes_initial_value(BirthId id);

  private:
    Birth& make(KindSet kind, const OpEvent& event, const OpContext& context) {
        Birth& birth = store_.make(kind, event, context, phase_.of(event, context));
        if (context.in_data_loader) birth.met = FirstMet::Parameter;  // a data set's code makes data
        return birth;
    }
    BirthId find_origin(Kind kind, const OpEvent& event, const OpContext& context, const BirthKinds& before,
                        const BirthKinds& old, const ForwardRecord& forward);
    void meet(Birth& birth, const OpEvent& event, const OpContext& context) const;
    BirthId recomputed(const Birth& birth, const OpEvent& event, const OpContext& context);
    BirthId loaded(Kind kind, const OpEvent& event, const OpContext& context);
    BirthId read_from(Kind kind, const OpContext& context, const BirthKinds& before, BirthId inf,
                      const ForwardRecord& forward);
    bool explain(Birth& birth, const OpEvent& event, const OpEvent& at, const OpContext& context, BirthId inf,
                 bool reads, bool adopts);

    const Scanner& scanner_;
    const StackFacts& stacks_;
    Ledger& ledger_;
    BirthStore store_;
    StepPhase phase_;
    BirthFacts facts_;
    ExchangedBirths exchanged_;
    ExternalBirths external_;
};

}  // namespace numsan
