// What happens when the process initialises CUDA: programs without torch get a report that says what ran unseen, and
// launches are counted where that is wanted.
#pragma once

#include "host/finding/run_summary.h"
#include "interpose/runtime/stub_abi.h"

namespace numsan {

/// Inside cuInit, on whatever thread, with torch there or not: makes no call of CUDA's, none of Python's. Once. False
/// when nothing is to be done here.
bool cuda_started(const numsan_stub_api& stub);

/// torch attaches: from now on its session reports, and CUDA's work is announced. Before the session is made.
void framework_attaches() noexcept;

/// Adds to a session's coverage what is known of launches.
void add_launches(RunSummary& run);

}  // namespace numsan
