// Which training faults the measured signals speak for.
#pragma once

#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/signals.h"

namespace numsan {

/// The faults whose rules are met, likeliest first; what another one explains is left out. [MT]
std::vector<Fault> ruled_faults(const Signals& signals);

/// These, or what the learned model takes for likely where no rule is met. Empty: none was recognised, which is not to
/// say that there is none. [MT]
std::vector<Fault> rank_faults(const Signals& signals);

}  // namespace numsan
