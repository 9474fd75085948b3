// Makes births: decides what a bad value goes back to, measures it, says how it came about.
#pragma once

#include <cstdint>
#include <string>

#include "host/base/ids.h"
#include "host/base/scanner.h"
#include "host/birth/birth_facts.h"
#include "host/birth/birth_store.h"
#include "host/birth/exchanged_births.h"
#include "host/birth/step_phase.h"
#include "host/cause/birth.h"
#include "host/ops/operands.h"
#include "host/track/forward_record.h"
#include "host/track/ledger.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class Births {
  public:
    /// All outlive this.
    Births(const Scanner& scanner, const StackFacts& stacks, BirthStore& store, const StepPhase& phase,
           BirthFacts& facts, ExchangedBirths& exchanged)
        : scanner_(scanner), stacks_(stacks), store_(store), phase_(phase), facts_(facts), exchanged_(exchanged) {}

    /// What knows the kernels that ops launched; null: nobody. Before the first op.
    void set_launches_of(LaunchesOf launches_of) { launches_of_ = launches_of; }

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
    Birth& flushed(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                   Mechanism mechanism, std::string evidence);
    /// Another one: its result is close to the largest number of its type, or was cut to it.
    Birth& near_overflow(const OpEvent& event, int32_t index, const OpContext& context, const ForwardRecord& forward,
                         Mechanism mechanism, std::string evidence);

    /// An op reads it.
    void used(BirthId id, const OpEvent& event, const OpContext& context);

    /// It is read as a parameter now. What was made of data, and not by training, is that parameter's initial value.
    void becomes_initial_value(BirthId id);

  private:
    Birth& make(KindSet kind, const OpEvent& event, const OpContext& context) {
        std::vector<KernelLaunch> launches;
        if (launches_of_ != nullptr && !event.launches.empty()) launches = launches_of_(event.launches);
        Birth& birth = store_.make(kind, event, context, phase_.of(event, context));
        birth.launches = std::move(launches);
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
    BirthStore& store_;
    const StepPhase& phase_;
    BirthFacts& facts_;
    ExchangedBirths& exchanged_;
    LaunchesOf launches_of_ = nullptr;
};

}  // namespace numsan
