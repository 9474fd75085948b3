// Report files back into documents.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace numsan {

/// A document, or why there is none.
struct ReadResult {
    nlohmann::ordered_json document;
    std::string error;     ///< empty, or one line: file, reason and byte offset
    bool foreign = false;  ///< it has content, and nothing in it says that numsan wrote it

    bool ok() const { return error.empty(); }
};

/// Reads and checks one report: JSON, the schema marker, and the parts that every reader relies on. Where `text` is not
/// null it becomes what was read. A long file is read to its end only where it begins as a report. Throws
/// std::bad_alloc alone. [MT]
ReadResult read_report(const std::string& path, std::string* text = nullptr, bool skim = false);

/// The same for text that is already in memory; `name` is what errors call it. Where it is skimmed,
/// histories, chains, excerpts and the stacks of forward operators, which no text shows, are empty. [MT]
ReadResult parse_report(const std::string& name, const std::string& text, bool skim = false);

}  // namespace numsan
