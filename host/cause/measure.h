// Measures the facts around a birth, while what the op read is still there.
#pragma once

#include <cstdint>
#include <span>

#include "host/base/value_classes.h"
#include "host/cause/features.h"
#include "host/finding/tensor_fact.h"
#include "host/track/lineage.h"
#include "host/track/op_context.h"

namespace numsan {

/// The facts of a tensor: the `index`-th on its `side` of an op. `exact`: `health` counts, else it knows ranges.
TensorFact fact_of(const TensorView& t, const char* side, int32_t index, const Health& health, bool exact);

/// What is known at the moment of a birth. `facts` are the operands of `event`, in order, those that can be scanned.
Features measure(const OpEvent& event, const OpContext& context, std::span<const TensorFact> facts, KindSet kind,
                 const Lineage& lineage);

}  // namespace numsan
