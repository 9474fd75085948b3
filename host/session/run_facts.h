// What a report says about the run itself: command, host, rank, times.
#pragma once

#include "host/analyze/run_summary.h"
#include "host/options/options.h"

namespace numsan {

/// Facts of this process as it starts. Reads /proc/self and the environment (RANK, WORLD_SIZE and their launchers'
/// kin).
RunSummary run_facts(const Options& options);

PathFacts path_facts(const RunSummary& run);

/// RFC 3339, UTC, seconds.
std::string now_text();

}  // namespace numsan
