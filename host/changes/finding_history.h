// Findings over many nights: since when each is there, and how it moved.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/format/known_findings.h"

namespace numsan {

/// The reports of one night: a folder of them, or one file.
struct Night {
    std::string path;
    std::string started;  ///< of the first run, RFC 3339 in UTC; empty where no report says
    std::unique_ptr<KnownFindings> known;
};

/// What was read of a folder, and what could not be.
struct Nights {
    std::vector<Night> nights;  ///< in the order of their time; those without a time by their names, first
    ReadReports read;
};

/// Every *.json of `folder` is a night, and every folder in it that has *.json. Never throws for any content.
Nights read_nights(const std::string& folder);

/// How close the largest finite value that an operator wrote was to the largest number of its type.
struct Headroom {
    double absmax = 0;
    std::string dtype;
    double largest = 0;  ///< of the type
};

/// Of the results of a finding's operator; none where they were not read or nothing in them is finite. [MT]
std::optional<Headroom> headroom_of(const KnownFinding& finding);

/// One finding in all nights.
struct FindingHistory {
    /// In the order of the nights; null where a night does not have it. They live as long as the nights.
    std::vector<const KnownFinding*> nights;

    size_t first() const;  ///< the first night that has it
    size_t last() const;   ///< the last one
    const KnownFinding& latest() const { return *nights[last()]; }
    size_t sightings() const;
};

enum class HistoryState { Appeared, Returned, Present, Gone };

/// Of the last night: new there, there again, there as before, or not there.
HistoryState state_of(const FindingHistory& history);

/// "new", "back", "present", "gone".
const char* to_string(HistoryState state);

/// Which findings of different nights are one is decided as by finding_changes(). Those of the last night come first,
/// then by when they were there last. [MT]
std::vector<FindingHistory> finding_histories(const std::vector<Night>& nights);

}  // namespace numsan
