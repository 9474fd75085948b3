// The value that backward() starts from: whether it is bad, and what that goes back to.
#pragma once

#include "host/base/scanner.h"
#include "host/birth/birth_store.h"
#include "host/birth/external_births.h"
#include "host/track/ledger.h"
#include "host/track/lineage.h"
#include "host/track/loss_history.h"
#include "host/track/stack_facts.h"
#include "host/verdict/escapes.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class LossStart {
  public:
    /// All outlive this.
    LossStart(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage, Ledger& ledger,
              LossHistory& losses, BirthStore& births, ExternalBirths& external, Escapes& escapes)
        : scanner_(scanner),
          stacks_(stacks),
          lineage_(lineage),
          ledger_(ledger),
          losses_(losses),
          births_(births),
          external_(external),
          escapes_(escapes) {}

    /// backward() is about to start from the op's operand; `before`: the births in it.
    void begin(const OpEvent& event, const OpContext& context, const BirthKinds& before, Outcome& outcome);

  private:
    const Scanner& scanner_;
    const StackFacts& stacks_;
    const Lineage& lineage_;
    Ledger& ledger_;
    LossHistory& losses_;
    BirthStore& births_;
    ExternalBirths& external_;
    Escapes& escapes_;
};

}  // namespace numsan
