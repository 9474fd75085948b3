// Findings over many nights, as documents.
#pragma once

#include <string>
#include <vector>

#include "host/changes/finding_history.h"
#include "host/format/formats.h"
#include "host/report/text_layout.h"

namespace numsan {

/// In a format that the command `history` knows; ends with a newline. [MT]
std::string history_document(Format format, const std::string& folder, const std::vector<Night>& nights,
                             const std::vector<FindingHistory>& histories, const TextStyle& style);

/// "magnitude 31000, 47.3 % of the largest float16"; empty where nothing is known. [MT]
std::string headroom_text(const KnownFinding& finding);

/// The HTML page. [MT]
std::string history_page(const std::string& folder, const std::vector<Night>& nights,
                         const std::vector<FindingHistory>& histories);

}  // namespace numsan
