// From which rank's finding the bad values came that a finding of another rank has received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/ranks/jobs.h"

namespace numsan {

/// One finding of one rank of a job.
struct Sighting {
    int64_t rank = -1;
    const RankReport* report = nullptr;
    const RankFinding* finding = nullptr;

    /// By step, then by rank; of one rank by the order of births.
    bool operator<(const Sighting& other) const;
};

/// All of a job, in the order of its ranks.
std::vector<Sighting> sightings_of(const Job& job);

/// Where a finding's values come from.
struct RankOrigin {
    static constexpr size_t kNone = ~size_t(0);

    size_t sighting = kNone;  ///< the first link of the chain: the finding itself where no other rank sent it
    bool is_lost = false;     ///< that one received it, too, from a rank of which there is no report to the end
    size_t hops = 0;          ///< ranks that handed it on, that one included
};

/// One for each of them. Senders and receivers are matched by the numbers of their operations; where those are not
/// known, a rank that had sent bad values to the same group, or to the same rank, sent these. [MT]
std::vector<RankOrigin> origins_of(const Job& job, const std::vector<Sighting>& sightings);

/// Ranks of a job that have no report to the end: none at all, or one of a process that had not ended.
class SilentRanks {
  public:
    explicit SilentRanks(const Job& job);

    /// Those from which a received value may have come, in rising order.
    std::vector<int64_t> that_may_send(const Sighting& receiver) const;

  private:
    struct Group {
        std::vector<int64_t> ranks;   ///< in its own order
        std::vector<int64_t> silent;  ///< those of them that are, in rising order
    };
    const Group& group(const std::string& listed) const;

    std::vector<int64_t> silent_;                            ///< in rising order
    mutable std::unordered_map<std::string, Group> groups_;  ///< by RankGroup::ranks; "" is the whole job
};

}  // namespace numsan
