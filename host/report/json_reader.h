// Report files back into documents.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace numsan {

/// A document, or why there is none.
// NOLINTNEXTLINE(bugprone-exception-escape): an empty document throws nothing
struct ReadResult {
    nlohmann::ordered_json document;
    std::string error;     ///< empty, or one line: file, reason and byte offset
    bool foreign = false;  ///< it has content, and nothing in it says that numsan wrote it

    bool ok() const { return error.empty(); }
};

/// What of a report's findings is read, checked and left out of the document.
enum class Skim {
    Nothing,
    Lists,   ///< lists that no text shows: histories, chains, excerpts, stacks of forward operators
    Values,  ///< all lists, and what tensors held: what a finding is known by stays
};

/// Reads and checks one report: JSON, the schema marker, and the parts that every reader relies on. Where `text` is not
/// null it becomes what was read. A long file is read to its end only where it begins as a report. Throws
/// std::bad_alloc alone. [MT]
ReadResult read_report(const std::string& path, std::string* text = nullptr, Skim skim = Skim::Nothing);

/// The same for text that is already in memory; `name` is what errors call it. What is skimmed is empty. [MT]
ReadResult parse_report(const std::string& name, const std::string& text, Skim skim = Skim::Nothing);

}  // namespace numsan
