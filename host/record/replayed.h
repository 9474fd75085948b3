// What came of a replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/record/segment.h"

namespace numsan {

struct Replayed {
    std::string report;         ///< the JSON text
    std::optional<RunEnd> end;  ///< none: the recording ends before the run did
    std::string why_no_end;
    int64_t calls = 0;    ///< that were played
    int64_t missing = 0;  ///< questions of the session that the recording does not answer
    std::string first_missing;
};

}  // namespace numsan
