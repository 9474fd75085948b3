// The whole document of one finding of one rank.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "host/ranks/origins.h"

namespace numsan {

struct SightingDocument {
    std::optional<nlohmann::ordered_json> finding;  ///< none: the file cannot be read any more
    std::string cwd;                                ///< of that run
};

/// Reads the report once more: of thousands only a few findings are shown in full. The ranks that it names by their
/// place in a group are named by their place in the job, where other reports of it say which those are. [MT]
SightingDocument document_of(const Sighting& sighting, const Job& job);

}  // namespace numsan
