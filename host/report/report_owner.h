// Whose report a file is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace numsan {

struct ReportOwner {
    int64_t pid;
    std::string process;  ///< see RunSummary; empty where it does not say
    bool has_findings;
    bool has_rank;
};

/// None where the file cannot be read, or is no report. Never throws for any content. [MT]
std::optional<ReportOwner> owner_of_report(const std::string& path);

}  // namespace numsan
