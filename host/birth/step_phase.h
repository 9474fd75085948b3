// Which part of a training step an op belongs to.
#pragma once

#include "host/base/tensor_view.h"
#include "host/cause/birth.h"
#include "host/track/lineage.h"
#include "host/track/op_context.h"
#include "host/track/stack_facts.h"

namespace numsan {

/// The optimizer's own arithmetic, not the closure it calls.
bool updates(const OpEvent& event, const OpContext& context);

/// Not thread-safe: the verdict's lock protects it.
class StepPhase {
  public:
    /// All outlive this.
    StepPhase(const StackFacts& stacks, const Lineage& lineage) : stacks_(stacks), lineage_(lineage) {}

    Phase of(const OpEvent& event, const OpContext& context) const;

  private:
    bool of_gradients(const OpEvent& event) const;

    const StackFacts& stacks_;
    const Lineage& lineage_;
};

}  // namespace numsan
