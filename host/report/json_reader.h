// Report files back into documents.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace numsan {

/// A document, or why there is none.
struct ReadResult {
    nlohmann::ordered_json document;
    std::string error;  ///< empty, or one line: file, reason and byte offset

    bool ok() const { return error.empty(); }
};

/// Reads and checks one report: JSON, the schema marker, and the parts that every reader relies on. Never throws for
/// any content. [MT]
ReadResult read_report(const std::string& path);

/// The same for text that is already in memory; `name` is what errors call it. [MT]
ReadResult parse_report(const std::string& name, const std::string& text);

}  // namespace numsan
