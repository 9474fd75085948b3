#include "host/ranks/origins.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "host/log/rank_list.h"

namespace numsan {
namespace {

/// What both sides of an operation know of it.
struct Link {
    uint32_t group;
    uint64_t number;
    int64_t tag;       ///< -1: of the whole group
    int32_t from, to;  ///< of a send and its receive, ranks of the group; else -1

    bool operator==(const Link&) const = default;
    struct Hash {
        size_t operator()(const Link& link) const noexcept {
            size_t hash = link.group;
            for (const uint64_t part : {link.number, static_cast<uint64_t>(link.tag), static_cast<uint64_t>(link.from),
                                        static_cast<uint64_t>(link.to)}) {
                hash = (hash ^ part) * 0x9E3779B97F4A7C15;
                hash ^= hash >> 29;
            }
            return hash;
        }
    };
};

/// The findings that sent bad values, by where they went.
class Senders {
  public:
    explicit Senders(const std::vector<Sighting>& sightings) : sightings_(sightings) {
        for (size_t i = 0; i < sightings.size(); ++i) {
            if (sightings[i].finding->is_foreign && has_group(i, sightings[i].finding->received))
                by_link_.try_emplace(received_link(i));
        }
        for (size_t i = 0; i < sightings.size(); ++i) {
            for (const RankOperation& sent : sightings[i].finding->sent) {
                if (has_group(i, sent)) add(i, sent);
            }
        }
        for (auto& [link, senders] : by_link_) sort(senders);
        for (auto& [way, senders] : by_way_) sort(senders);
    }

    /// Those that may have sent what a finding received: the first, and of those that received it themselves a few. Of
    /// the ranks of a group thousands may have sent in one operation.
    std::vector<size_t> of(size_t receiver) const {
        const RankOperation& received = sightings_[receiver].finding->received;
        if (!has_group(receiver, received)) return {};
        const auto exact = by_link_.find(received_link(receiver));
        if (exact != by_link_.end()) {
            std::vector<size_t> senders = able(exact->second, receiver);
            if (!senders.empty()) return senders;
        }
        const auto earlier = by_way_.find(way_to(receiver));
        return earlier == by_way_.end() ? std::vector<size_t>() : able(earlier->second, receiver);
    }

  private:
    using Way = std::tuple<uint32_t, int64_t, int32_t>;  ///< group, tag, rank of the group that it went to; -1: all

    struct Sent {
        size_t sighting;
        const RankOperation* operation;
    };

    bool has_group(size_t sighting, const RankOperation& operation) const {
        return operation.group < sightings_[sighting].report->groups.size();
    }
    const RankGroup& group(size_t sighting, const RankOperation& operation) const {
        return sightings_[sighting].report->groups[operation.group];
    }
    /// The same for a group in all reports.
    uint32_t id(size_t sighting, const RankOperation& operation) const {
        return ids_.try_emplace(group(sighting, operation).name, static_cast<uint32_t>(ids_.size())).first->second;
    }
    int32_t own_rank(size_t sighting, const RankOperation& operation) const {
        return static_cast<int32_t>(group(sighting, operation).rank);
    }

    Link received_link(size_t receiver) const {
        const RankOperation& received = sightings_[receiver].finding->received;
        Link link{id(receiver, received), received.number, received.tag, -1, -1};
        if (received.between_two()) {
            link.from = received.peer;
            link.to = own_rank(receiver, received);
        }
        return link;
    }
    Way way_to(size_t receiver) const {
        const RankOperation& received = sightings_[receiver].finding->received;
        return {id(receiver, received), received.tag, received.between_two() ? own_rank(receiver, received) : -1};
    }
    void add(size_t sighting, const RankOperation& sent) {
        Link link{id(sighting, sent), sent.number, sent.tag, -1, -1};
        if (sent.between_two()) {
            link.from = own_rank(sighting, sent);
            link.to = sent.peer;
        }
        const auto asked = sent.number > 0 ? by_link_.find(link) : by_link_.end();
        if (asked != by_link_.end()) asked->second.push_back({sighting, &sent});
        // Of a finding the first operation on each way says that it went there.
        std::vector<Sent>& way = by_way_[{link.group, sent.tag, sent.between_two() ? sent.peer : -1}];
        if (way.empty() || way.back().sighting != sighting) way.push_back({sighting, &sent});
    }

    /// Whose value it was first is known where no other rank sent it. Then by step and rank.
    void sort(std::vector<Sent>& senders) const {
        std::sort(senders.begin(), senders.end(), [&](const Sent& a, const Sent& b) {
            const Sighting &one = sightings_[a.sighting], &other = sightings_[b.sighting];
            return one.finding->is_foreign != other.finding->is_foreign ? other.finding->is_foreign : one < other;
        });
    }

    /// Whether the receiver's values may be those: other ranks' that had begun to send by then, the one rank that is
    /// known, and not what went to one other rank alone.
    bool is_able(const Sent& sent, size_t receiver) const {
        const RankOperation& received = sightings_[receiver].finding->received;
        const RankOperation& operation = *sent.operation;
        if (sightings_[sent.sighting].rank == sightings_[receiver].rank) return false;
        if (received.number > 0 && operation.number > received.number) return false;
        if (received.peer >= 0 && own_rank(sent.sighting, operation) != received.peer) return false;
        return operation.peer < 0 || operation.peer == own_rank(receiver, received);
    }
    std::vector<size_t> able(const std::vector<Sent>& senders, size_t receiver) const {
        constexpr size_t kMostFollowed = 8;
        std::vector<size_t> out;
        for (const Sent& sent : senders) {
            if (out.size() == kMostFollowed) break;
            if (!is_able(sent, receiver)) continue;
            out.push_back(sent.sighting);
            if (!sightings_[sent.sighting].finding->is_foreign) break;
        }
        return out;
    }

    const std::vector<Sighting>& sightings_;
    mutable std::unordered_map<std::string, uint32_t> ids_;
    std::unordered_map<Link, std::vector<Sent>, Link::Hash> by_link_;  ///< those that are asked for
    std::map<Way, std::vector<Sent>> by_way_;
};

/// Follows each finding to the one that no other rank sent.
class Chains {
  public:
    Chains(const Job& job, const std::vector<Sighting>& sightings)
        : sightings_(sightings), silent_(job), senders_(sightings), origins_(sightings.size()) {}

    std::vector<RankOrigin> all() {
        for (size_t i = 0; i < sightings_.size(); ++i) follow(i);
        return std::move(origins_);
    }

  private:
    /// Without recursion: a chain of stages may be as long as there are ranks.
    void follow(size_t first) {
        std::vector<std::pair<size_t, std::vector<size_t>>> path;
        const auto enter = [&](size_t at) {
            path.emplace_back(at, sightings_[at].finding->is_foreign ? senders_.of(at) : std::vector<size_t>());
            on_path_.resize(sightings_.size());
            on_path_[at] = true;
        };
        if (origins_[first].sighting == RankOrigin::kNone) enter(first);
        while (!path.empty()) {
            const size_t at = path.back().first;
            const std::vector<size_t>& senders = path.back().second;
            const auto next = std::find_if(senders.begin(), senders.end(), [&](size_t sender) {
                return origins_[sender].sighting == RankOrigin::kNone && !on_path_[sender];
            });
            if (next != senders.end()) {
                enter(*next);
                continue;
            }
            origins_[at] = end_of(at, senders);
            on_path_[at] = false;
            path.pop_back();
        }
    }

    bool comes_first(const RankOrigin& origin, const RankOrigin& other) const {
        if (origin.sighting == other.sighting) return origin.hops < other.hops;
        return sightings_[origin.sighting] < sightings_[other.sighting];
    }

    RankOrigin end_of(size_t at, const std::vector<size_t>& senders) const {
        RankOrigin best;
        for (const size_t sender : senders) {
            const RankOrigin& origin = origins_[sender];
            if (origin.sighting == RankOrigin::kNone) continue;  // a circle
            const bool better = best.sighting == RankOrigin::kNone || (best.is_lost && !origin.is_lost) ||
                                (best.is_lost == origin.is_lost && comes_first(origin, best));
            if (better) best = origin;
        }
        ++best.hops;
        if (best.sighting != RankOrigin::kNone) return best;
        return {at, sightings_[at].finding->is_foreign && !silent_.that_may_send(sightings_[at]).empty(), 0};
    }

    const std::vector<Sighting>& sightings_;
    const SilentRanks silent_;
    const Senders senders_;
    std::vector<RankOrigin> origins_;
    std::vector<bool> on_path_;
};

}  // namespace

bool Sighting::operator<(const Sighting& other) const {
    return std::tuple(finding->step, rank, finding->seq, report->number, finding->position) <
           std::tuple(other.finding->step, other.rank, other.finding->seq, other.report->number,
                      other.finding->position);
}

std::vector<Sighting> sightings_of(const Job& job) {
    std::vector<Sighting> all;
    for (const auto& [rank, reports] : job.ranks) {
        for (const RankReport* report : reports) {
            for (const RankFinding& finding : report->findings) all.push_back({rank, report, &finding});
        }
    }
    return all;
}

std::vector<RankOrigin> origins_of(const Job& job, const std::vector<Sighting>& sightings) {
    return Chains(job, sightings).all();
}

SilentRanks::SilentRanks(const Job& job) {
    constexpr int64_t kMost = 1 << 20;
    const int64_t known = job.ranks.empty() ? 0 : job.ranks.rbegin()->first + 1;
    for (int64_t rank = 0; rank < std::min(std::max(job.world_size.value_or(0), known), kMost); ++rank) {
        const auto there = job.ranks.find(rank);
        const bool ended = there != job.ranks.end() && there->second.front()->has_ended();
        // Without a world size nobody knows of a rank that is not there.
        if (!ended && (there != job.ranks.end() || rank < job.world_size.value_or(0))) silent_.push_back(rank);
    }
}

const SilentRanks::Group& SilentRanks::group(const std::string& listed) const {
    const auto [it, added] = groups_.try_emplace(listed);
    Group& group = it->second;
    if (!added) return group;
    group.ranks = ranks_of_list(listed);
    if (group.ranks.empty()) {
        group.silent = silent_;
        return group;
    }
    std::vector<int64_t> sorted = group.ranks;
    std::sort(sorted.begin(), sorted.end());
    std::set_intersection(sorted.begin(), sorted.end(), silent_.begin(), silent_.end(),
                          std::back_inserter(group.silent));
    return group;
}

std::vector<int64_t> SilentRanks::that_may_send(const Sighting& receiver) const {
    if (silent_.empty()) return {};
    const RankOperation& received = receiver.finding->received;
    const bool known = received.group < receiver.report->groups.size();
    const Group& members = group(known ? receiver.report->groups[received.group].ranks : "");
    std::vector<int64_t> may = members.silent;
    if (received.peer >= 0 && static_cast<size_t>(received.peer) < members.ranks.size()) {
        const int64_t sender = members.ranks[static_cast<size_t>(received.peer)];
        may = std::binary_search(may.begin(), may.end(), sender) ? std::vector{sender} : std::vector<int64_t>();
    }
    std::erase(may, receiver.rank);
    return may;
}

}  // namespace numsan
