// What happened in a job: which rank was first, which ranks only received, which are missing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/ranks/origins.h"
#include "host/ranks/rank_reports.h"

namespace numsan {

/// A finding that no other rank sent, with all ranks that have it.
struct OwnFinding {
    std::vector<Sighting> sightings;  ///< in the order of the ranks
    Sighting first;                   ///< the first of them

    std::vector<int64_t> ranks() const;
};

/// Findings of values that came from one rank.
struct ReceivedFindings {
    Sighting origin;                     ///< that rank's; none where it is not known
    std::vector<int64_t> may_come_from;  ///< then: ranks without a report to the end
    std::vector<Sighting> sightings;     ///< in the order of the ranks
    Sighting first;                      ///< the first of them

    bool is_lost() const { return origin.report == nullptr; }
    std::vector<int64_t> ranks() const;  ///< less the origin's
    bool came_back() const;              ///< the origin has received what others made of it
};

struct JobStory {
    const Job* job = nullptr;
    std::vector<OwnFinding> own;  ///< what was first, then the others by step and rank
    std::vector<ReceivedFindings> received;
    // Ranks, in rising order.
    std::vector<int64_t> only_received;
    std::vector<int64_t> quiet;                      ///< a report to the end, and no finding in it
    std::vector<int64_t> not_ended;                  ///< a report that was written before the process ended
    std::vector<int64_t> lossy;                      ///< ended, and something was lost
    std::vector<int64_t> missing;                    ///< no report
    bool quiet_write_none = false;                   ///< ranks that found nothing write no report
    std::map<int64_t, std::vector<int64_t>> failed;  ///< ended with this status, which is not 0
    size_t hosts = 0;
};

/// The finding that was first: among those that are most severe the one before which no rank had begun fewer operations
/// of a group; then the one of the earliest step, of the lowest rank. [MT]
JobStory story_of(const Job& job);

}  // namespace numsan
