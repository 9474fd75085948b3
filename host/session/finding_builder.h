// A birth that escaped, stacks by number and tensors by address -> a finding that people and programs can read.
#pragma once

#include "host/finding/finding.h"
#include "host/finding/place_of.h"
#include "host/stacks/open_ranges.h"
#include "host/stacks/stack_source.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// Fills everything but `id`, `first` and `rank`. Reads source files.
Finding build_finding(const EscapedBirth& escaped, const StackSource& stacks, const OpenRanges& ranges,
                      const LiveNames& names, const PlaceFinder& places);

/// Mechanism, op, phase and line: births that agree in these are one finding, whichever layer they are of.
std::string place_of_finding(const Finding& finding);

}  // namespace numsan
