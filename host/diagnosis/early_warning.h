// Growth that will leave its type's range, as a run tells it before it does and as its report keeps it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/finding/place.h"
#include "host/report/text_layout.h"

namespace numsan {

struct EarlyWarning {
    std::string of;                 ///< "output", "parameter" or "gradient"
    std::string name;               ///< of the parameter; empty where it is not known
    std::vector<int64_t> shape;     ///< of the parameter, the first dimensions
    std::string op;                 ///< that writes the output, or read the parameter first
    std::optional<Place> location;  ///< of that op
    std::string dtype;
    int64_t step = 0;   ///< the last that was looked at
    double size = 0;    ///< largest magnitude in that step
    double limit = 0;   ///< largest number of the type
    double factor = 0;  ///< of growth in a step
    int64_t grown = 0;  ///< steps for which it has grown
    int64_t steps = 0;  ///< after `step`, until it is beyond the largest number
    int64_t least = 0;  ///< the interval of `steps`
    int64_t most = 0;
};

nlohmann::ordered_json early_warning_document(const EarlyWarning& warning);

/// What stands in a report; what is missing or of another type is empty or 0. Never throws for any document. [MT]
EarlyWarning read_early_warning(const nlohmann::ordered_json& document);

/// The first of them, and how many there are beside it, for people; empty where there is none. Lines end with a
/// newline.
std::string render_early_warnings(const std::vector<EarlyWarning>& warnings, const TextStyle& style);

}  // namespace numsan
