#include "host/ranks/job_story.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "host/options/report_when.h"

namespace numsan {
namespace {

std::vector<int64_t> ranks_of(const std::vector<Sighting>& sightings) {
    std::vector<int64_t> ranks;
    for (const Sighting& one : sightings) {
        if (ranks.empty() || ranks.back() != one.rank) ranks.push_back(one.rank);
    }
    return ranks;
}

/// How many operations of each group of its process had begun before a birth. A group of which none had is among those
/// of the report all the same.
template <class Visit>
void each_count(const Sighting& sighting, Visit&& visit) {
    if (!sighting.finding->begun) return;
    const std::vector<RankGroup>& groups = sighting.report->groups;
    for (uint32_t place = 0; place < groups.size(); ++place) {
        uint64_t count = 0;
        for (const auto& [group, begun] : *sighting.finding->begun) {
            if (group == place) count = begun;
        }
        visit(groups[place], count);
    }
}

/// Orders findings of different ranks by the operations that their ranks had begun.
class OperationOrder {
  public:
    explicit OperationOrder(const std::vector<Sighting>& sightings) {
        for (const Sighting& one : sightings) {
            each_count(one, [&](const RankGroup& group, uint64_t count) {
                const auto [least, added] = least_.try_emplace(group.name, count);
                if (!added) least->second = std::min(least->second, count);
            });
        }
    }

    /// In how many groups another rank had begun fewer operations before its finding: 0 for what nothing was before.
    size_t behind(const Sighting& sighting) const {
        size_t groups = 0;
        each_count(sighting, [&](const RankGroup& group, uint64_t count) { groups += count > least_.at(group.name); });
        return groups;
    }

  private:
    std::unordered_map<std::string, uint64_t> least_;
};

/// The one that was first; where groups contradict each other, the one that is behind in the fewest.
Sighting first_of(const std::vector<Sighting>& sightings) {
    const OperationOrder order(sightings);
    Sighting first;
    size_t least = 0;
    for (const Sighting& one : sightings) {
        const size_t behind = order.behind(one);
        if (first.report != nullptr && (behind > least || (behind == least && !(one < first)))) continue;
        first = one;
        least = behind;
    }
    return first;
}

std::vector<OwnFinding> own_findings(const std::vector<Sighting>& roots) {
    std::unordered_map<std::string, OwnFinding> by_key;
    for (const Sighting& root : roots) by_key[root.finding->key].sightings.push_back(root);
    std::vector<OwnFinding> own;
    int worst = 0;
    for (auto& [key, finding] : by_key) {
        finding.first = first_of(finding.sightings);
        for (const Sighting& one : finding.sightings) worst = std::max(worst, one.finding->severity);
        own.push_back(std::move(finding));
    }
    std::sort(own.begin(), own.end(), [](const OwnFinding& a, const OwnFinding& b) { return a.first < b.first; });
    std::vector<Sighting> candidates;
    for (const Sighting& root : roots) {
        if (root.finding->severity == worst) candidates.push_back(root);
    }
    const Sighting first = first_of(candidates);
    const auto place = std::find_if(own.begin(), own.end(), [&](const OwnFinding& finding) {
        return first.finding != nullptr && finding.sightings.front().finding->key == first.finding->key;
    });
    if (place == own.end()) return own;
    place->first = first;
    std::rotate(own.begin(), place, place + 1);
    return own;
}

const std::string& group_name(const Sighting& sighting, const RankOperation& operation) {
    static const std::string& none = *new std::string();
    const std::vector<RankGroup>& groups = sighting.report->groups;
    return operation.group < groups.size() ? groups[operation.group].name : none;
}

/// Which of the operations that the origin sent with a receiver's is; past the end where it is none of them.
size_t place_among_sent(const Sighting& origin, const Sighting& receiver) {
    if (origin.report == nullptr) return 0;
    const RankOperation& received = receiver.finding->received;
    const std::vector<RankOperation>& sent = origin.finding->sent;
    const auto same = std::find_if(sent.begin(), sent.end(), [&](const RankOperation& operation) {
        return operation.number == received.number && operation.tag == received.tag &&
               group_name(origin, operation) == group_name(receiver, received);
    });
    return static_cast<size_t>(same - sent.begin());
}

/// Findings of one origin, with how far from it each is.
struct Received {
    ReceivedFindings findings;
    std::vector<size_t> hops;

    void add(const Sighting& sighting, size_t distance) {
        findings.sightings.push_back(sighting);
        hops.push_back(distance);
    }
    /// The first is one of those to which the value came first.
    ReceivedFindings finish() {
        const size_t nearest = *std::min_element(hops.begin(), hops.end());
        std::map<size_t, std::vector<Sighting>> by_place;
        for (size_t i = 0; i < hops.size(); ++i) {
            if (hops[i] == nearest)
                by_place[place_among_sent(findings.origin, findings.sightings[i])].push_back(findings.sightings[i]);
        }
        const std::vector<Sighting>& near = by_place.begin()->second;
        findings.first = first_of(near);
        std::sort(findings.sightings.begin(), findings.sightings.end(), [](const Sighting& a, const Sighting& b) {
            return std::pair(a.rank, a.finding->seq) < std::pair(b.rank, b.finding->seq);
        });
        return std::move(findings);
    }
};

std::vector<ReceivedFindings> received_findings(const Job& job, const std::vector<Sighting>& sightings,
                                                const std::vector<RankOrigin>& origins) {
    const SilentRanks silent(job);
    std::unordered_map<size_t, Received> known;
    // Those of which the sender is not known are one where it may be the same.
    std::map<std::vector<int64_t>, Received> lost;
    for (size_t i = 0; i < sightings.size(); ++i) {
        const RankOrigin& origin = origins[i];
        if (origin.sighting == i && !origin.is_lost) continue;
        if (!origin.is_lost) {
            Received& received = known[origin.sighting];
            received.findings.origin = sightings[origin.sighting];
            received.add(sightings[i], origin.hops);
            continue;
        }
        std::vector<int64_t> senders = silent.that_may_send(sightings[origin.sighting]);
        Received& received = lost[senders];
        received.findings.may_come_from = std::move(senders);
        received.add(sightings[i], origin.hops);
    }
    std::vector<ReceivedFindings> all;
    all.reserve(known.size() + lost.size());
    for (auto& [origin, received] : known) all.push_back(received.finish());
    for (auto& [senders, received] : lost) all.push_back(received.finish());
    std::sort(all.begin(), all.end(),
              [](const ReceivedFindings& a, const ReceivedFindings& b) { return a.first < b.first; });
    return all;
}

void sort_ranks(const Job& job, JobStory& story) {
    constexpr int64_t kMost = 1 << 20;
    std::set<int64_t> own;
    std::set<std::string> hosts;
    for (const OwnFinding& finding : story.own) {
        for (const Sighting& one : finding.sightings) own.insert(one.rank);
    }
    for (const auto& [rank, reports] : job.ranks) {
        const RankReport& process = *reports.front();
        hosts.insert(process.host);
        const bool finds = std::any_of(reports.begin(), reports.end(),
                                       [](const RankReport* report) { return !report->findings.empty(); });
        if (finds && own.count(rank) == 0) story.only_received.push_back(rank);
        if (!process.has_ended())
            story.not_ended.push_back(rank);
        else if (process.incomplete)
            story.lossy.push_back(rank);
        else if (!finds)
            story.quiet.push_back(rank);
        if (process.exit_status.value_or(0) != 0) story.failed[*process.exit_status].push_back(rank);
        const bool many = process.world_size.value_or(0) > kFewRanks;
        story.quiet_write_none =
            story.quiet_write_none || process.report_when == "finding" || (process.report_when.empty() && many);
    }
    for (int64_t rank = 0; rank < std::min(job.world_size.value_or(0), kMost); ++rank) {
        if (job.ranks.count(rank) == 0) story.missing.push_back(rank);
    }
    story.hosts = hosts.size();
}

}  // namespace

std::vector<int64_t> OwnFinding::ranks() const { return ranks_of(sightings); }

std::vector<int64_t> ReceivedFindings::ranks() const {
    std::vector<int64_t> ranks = ranks_of(sightings);
    std::erase(ranks, origin.rank);
    return ranks;
}
bool ReceivedFindings::came_back() const {
    return std::any_of(sightings.begin(), sightings.end(),
                       [&](const Sighting& one) { return one.rank == origin.rank; });
}

JobStory story_of(const Job& job) {
    JobStory story;
    story.job = &job;
    const std::vector<Sighting> sightings = sightings_of(job);
    const std::vector<RankOrigin> origins = origins_of(job, sightings);
    std::vector<Sighting> roots;
    for (size_t i = 0; i < sightings.size(); ++i) {
        if (origins[i].sighting == i && !origins[i].is_lost) roots.push_back(sightings[i]);
    }
    story.own = own_findings(roots);
    story.received = received_findings(job, sightings, origins);
    sort_ranks(job, story);
    return story;
}

}  // namespace numsan
