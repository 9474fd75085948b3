// Births of values that no op was seen to make: unwritten memory, what other processes sent, compiled regions, state
// and data.
#pragma once

#include <vector>

#include "host/base/scanner.h"
#include "host/birth/birth_facts.h"
#include "host/birth/birth_store.h"
#include "host/birth/step_phase.h"
#include "host/track/ledger.h"
#include "host/track/op_context.h"
#include "host/track/stack_facts.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class ExternalBirths {
  public:
    /// All outlive this.
    ExternalBirths(const Scanner& scanner, const StackFacts& stacks, Ledger& ledger, BirthStore& births,
                   const BirthFacts& facts, const StepPhase& phase)
        : scanner_(scanner), stacks_(stacks), ledger_(ledger), births_(births), facts_(facts), phase_(phase) {}

    /// The births of the bad values in a tensor that the op reads, those of `kinds`: they were there before, or came
    /// from outside.
    BirthKinds made(const TensorView& tensor, const OpEvent& event, const OpContext& context, const Health& health,
                    KindSet kinds = kNaN | kAnyInf);
    /// The same of storage of which other kinds are known: a collective may have brought more, elsewhere in it.
    BirthKinds received(KindSet kinds, const TensorView& tensor, const OpEvent& event, const OpContext& context);

    /// A bad gradient, of which nothing is known, is about to reach its leaf right after a compiled region's node.
    BirthKinds of_region(const NodeEvent& event, const TensorView& gradient, const OpContext& context);

    /// A birth, and the one that it turned out to be.
    struct Replaced {
        BirthId from = 0;
        BirthId to = 0;
    };
    /// A compiled region handed back what its first operand holds: a result of its graph, run op by op, or what the
    /// region was given, or its own result, where nothing else is known (OpClass::Region). Births at ops that the
    /// region called itself are none: they are dropped, and the ledger has those of the operand in their place, and
    /// as the output's.
    std::vector<Replaced> explain_region(const OpEvent& event, const OpContext& context);

  private:
    const Ledger::Received* received_with(const TensorView& tensor, const OpEvent& event,
                                          const OpContext& context) const;
    bool from_compiled(const OpEvent& event, const OpContext& context, const TensorView& t) const;
    bool may_be_forgotten(const TensorView& tensor, const OpEvent& event) const;
    BirthId known_by_replay(KindSet wanted, const BirthKinds& replayed) const;
    BirthId before_region(const OpContext& context) const;
    BirthId make(Kind kind, const TensorView& tensor, const OpEvent& event, const OpContext& context,
                 const Health& health, bool compiled);

    const Scanner& scanner_;
    const StackFacts& stacks_;
    Ledger& ledger_;
    BirthStore& births_;
    const BirthFacts& facts_;
    const StepPhase& phase_;
};

}  // namespace numsan
