// What is kept of each thread whose ops are measured.
#pragma once

#include "host/perf/backward_passes.h"
#include "host/perf/cast_backs.h"
#include "host/perf/growing_results.h"
#include "host/perf/layout_copies.h"
#include "host/perf/loops/backward_costs.h"
#include "host/perf/loops/sample_loops.h"
#include "host/perf/repeated_work.h"
#include "host/perf/round_trips.h"
#include "host/perf/slow_places.h"
#include "host/perf/table_updates.h"

namespace numsan {

/// Lives as long as the watch: others read `places` when the run ends.
struct SlowThread {
    SlowPlaces places;
    RepeatedWork repeated;
    CastBacks casts;
    GrowingResults growing;
    TableUpdates tables;
    LayoutCopies layouts;
    RoundTrips trips;
    BackwardPasses passes;
    SampleLoops loops;
    BackwardCosts backward;
    SlowThread* next = nullptr;
};

}  // namespace numsan
