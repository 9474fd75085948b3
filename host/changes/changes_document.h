// Differences between the findings of two sets of reports, as documents.
#pragma once

#include <string>
#include <vector>

#include "host/changes/finding_changes.h"
#include "host/format/formats.h"
#include "host/report/text_layout.h"

namespace numsan {

/// The two sides of a difference: what was given, and what was read of it.
struct ComparedReports {
    std::string base_path;
    std::string new_path;
    const KnownFindings& base;
    const KnownFindings& now;
};

/// In a format that the command `diff` knows; ends with a newline. [MT]
std::string changes_document(Format format, const ComparedReports& compared, const std::vector<ChangedFinding>& changes,
                             const TextStyle& style);

}  // namespace numsan
