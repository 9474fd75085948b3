// What a report says about the run itself: command, host, rank, times.
#pragma once

#include "host/finding/run_summary.h"
#include "host/options/options.h"

namespace numsan {

/// Facts of this process as it starts. Reads /proc/self and the environment.
RunSummary run_facts(const Options& options);

/// Whether code that torch.compile generated is loaded: kernels of its own, in which no op is seen. Known by where its
/// files lie: TORCHINDUCTOR_CACHE_DIR, or a folder named as inductor names its own.
bool runs_generated_kernels();

PathFacts path_facts(const RunSummary& run);

/// RFC 3339, UTC, seconds.
std::string now_text();

}  // namespace numsan
