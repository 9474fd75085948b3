// Training faults that the learned model takes for likely, with the features that speak for them.
#pragma once

#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/learned/learned_model.h"
#include "host/diagnosis/signals.h"

namespace numsan {

/// Whether the run's loss shows what it learns, as the model was made for; known without a look at the model. [MT]
bool is_for_the_model(const Signals& signals);

/// Of such a run; likeliest first, two at most. [MT]
std::vector<Fault> learned_faults(const Signals& signals, const LearnedModel& model);

}  // namespace numsan
