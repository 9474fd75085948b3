// What a run loses time with: what reports are written from. Causes are generated from slow_causes.def. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/finding/place.h"

namespace numsan {

enum class SlowCause : uint8_t {
#define NUMSAN_SLOW_CAUSE(code, id, slug, title, meaning, least, measured, help, more) id,
#include "host/finding/slow/slow_causes.def"
#undef NUMSAN_SLOW_CAUSE
};

/// A row of slow_causes.def. Literals: valid for ever.
struct SlowCauseInfo {
    SlowCause value;
    const char* code;  ///< NP101
    const char* slug;
    const char* title;
    const char* meaning;
    double least_share;    ///< of a step; what costs less is no finding
    const char* measured;  ///< with {op}, {count}, {time}, {step}, {share}
    const char* help;
    const char* more_help;  ///< may be empty
};

inline constexpr SlowCauseInfo kSlowCauses[] = {
#define NUMSAN_SLOW_CAUSE(code, id, slug, title, meaning, least, measured, help, more) \
    {SlowCause::id, code, slug, title, meaning, least, measured, help, more},
#include "host/finding/slow/slow_causes.def"
#undef NUMSAN_SLOW_CAUSE
};

constexpr const SlowCauseInfo& info(SlowCause cause) { return kSlowCauses[static_cast<int>(cause)]; }

/// One line of the program and what it costs a step.
struct SlowFinding {
    SlowCause cause = SlowCause::HostWait;
    std::string op;  ///< empty: none is meant
    std::optional<Place> location;
    double seconds = 0;  ///< a step
    double share = 0;    ///< of a step
    int64_t count = 0;   ///< calls a step
    std::string measured;
};

/// Of a run with the option `perf`. Figures are medians of the last steps that were looked at.
struct SlowRun {
    int64_t steps = 0;                      ///< that the figures are of
    double step_s = 0;                      ///< how long one takes without numsan's own work in it
    std::vector<SlowFinding> findings;      ///< costliest first
    std::vector<std::string> not_measured;  ///< what was left out and why, in users' words
};

}  // namespace numsan
