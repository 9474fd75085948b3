// A training fault that measured signals speak for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/diagnosis/faults.h"
#include "host/finding/place.h"

namespace numsan {

struct Fault {
    FaultId id{};
    double confidence = 0;              ///< a probability
    std::vector<std::string> evidence;  ///< one measured fact each
    std::optional<Place> location;      ///< the line to change, as near as an op shows it
    std::vector<std::string> help;      ///< one change each, the likeliest first
    std::vector<std::string> signals;   ///< keys of signals.def that speak for it
    bool learned = false;               ///< the learned model says it, no rule
};

}  // namespace numsan
