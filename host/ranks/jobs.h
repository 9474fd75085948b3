// Which reports are of one start of a job: those of several are never taken for one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/ranks/rank_report.h"

namespace numsan {

/// One start of a job. A rank may have several reports: of its own process, and of processes that it started.
struct Job {
    std::string job;  ///< what its launcher tells jobs apart by; empty: it does not say
    std::string launcher;
    std::optional<int64_t> world_size;
    std::string started;                                      ///< of the first report
    std::map<int64_t, std::vector<const RankReport*>> ranks;  ///< the rank's own process first

    const RankReport& own(int64_t rank) const { return *ranks.at(rank).front(); }
    size_t reports() const;
};

/// What was read, sorted.
struct SortedReports {
    std::vector<Job> jobs;                    ///< in the order of their starts
    std::vector<const RankReport*> unranked;  ///< processes without a rank: launchers, and what belongs to no job
    std::vector<std::string> told_apart_by;   ///< why there are several: "job", "world size", a sentence on times
};

/// Reports of one job have the same job, where their launcher says it, and the same world size. Where a rank is there
/// twice they are told apart by the times of their starts, unless one process ran while the other did: a rank starts
/// processes of its own. [MT]
SortedReports sort_reports(const std::vector<const RankReport*>& reports);

}  // namespace numsan
