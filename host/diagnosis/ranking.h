// Which training faults the measured signals speak for.
#pragma once

#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/signals.h"

namespace numsan {

/// The faults, likeliest first; what another one explains is left out. The learned model is asked where no rule is sure.
/// Empty: none was recognised, which is not to say that there is none. [MT]
std::vector<Fault> rank_faults(const Signals& signals);

}  // namespace numsan
