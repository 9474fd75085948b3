// Costs by cause and stack -> findings that people and programs can read.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "host/finding/place_of.h"
#include "host/finding/slow/slow_run.h"
#include "host/perf/slow_places.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// What all threads measured.
struct SlowCosts {
    int64_t steps = 0;    ///< that were looked at
    int64_t step_ns = 0;  ///< how long one is
    bool float64_is_meant = false;
    bool on_device = false;
    bool gradients_leave = false;  ///< they are read where it is not seen which
    bool many_trainers = false;
    bool threads_left_out = false;  ///< for which there was no room
    std::map<std::pair<SlowCause, StackId>, SlowPlaces::Cost> by_stack;

    void add(SlowCause cause, StackId stack, const SlowPlaces::Cost& cost);
};

/// The fewest steps that say something of all.
inline constexpr int64_t kFewLookedSteps = 6;

/// Costs of one line are one finding, from wherever it is called. What costs less than its cause's share of a step is
/// none. Reads source files; throws std::bad_alloc.
SlowRun slow_run(const SlowCosts& costs, const StackSource& stacks, const PlaceFinder& places);

/// "12.3 ms", "850 us": three digits. [MT]
std::string duration_text(double seconds);

}  // namespace numsan
