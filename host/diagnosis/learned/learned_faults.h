// Training faults that the learned model takes for likely, with the features that speak for them.
#pragma once

#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/learned/learned_model.h"
#include "host/diagnosis/signals.h"

namespace numsan {

/// Of a run with 32 backward passes or more, from one place, of a loss that is known and not negative; likeliest first,
/// two at most. [MT]
std::vector<Fault> learned_faults(const Signals& signals, const LearnedModel& model);

}  // namespace numsan
