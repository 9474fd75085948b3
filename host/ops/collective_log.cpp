#include "host/ops/collective_log.h"

#include <algorithm>

#include "host/ops/collectives.h"

namespace numsan {

/// A program that takes its groups down and begins anew has others of the same names: their numbers go on.
size_t CollectiveLog::place_of(const Communicator& group) {
    const auto [it, added] = place_by_name_.try_emplace(group.name, groups_.size());
    if (added) groups_.push_back({&group, 0});
    groups_[it->second].group = &group;
    return it->second;
}

uint64_t CollectiveLog::begin(const OpEvent& event, OpSeq seq) {
    if (event.communicator == nullptr) return 0;
    const CollectiveRoute route = route_of(event);
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t place = place_of(*event.communicator);
    if (route.between_two()) {
        const Pair pair(place, route.way == CollectiveWay::Send, route.peer, route.tag);
        if (pairs_.size() >= kPairs && pairs_.count(pair) == 0) return 0;
        // From whom a receive of any rank's comes is known later.
        return route.peer >= 0 ? ++pairs_[pair] : 0;
    }
    kept_.emplace_back(seq, place);
    if (kept_.size() > kKept) {
        forgotten_ = std::max(forgotten_, kept_.front().first);
        kept_.pop_front();
    }
    return ++groups_[place].count;
}

std::vector<CollectiveLog::Begun> CollectiveLog::all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return groups_;
}

std::optional<std::vector<CollectiveLog::Begun>> CollectiveLog::before(OpSeq seq) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seq <= forgotten_) return std::nullopt;
    std::vector<Begun> counts = groups_;
    for (const auto& [began, place] : kept_) {
        if (began >= seq) --counts[place].count;
    }
    return counts;
}

}  // namespace numsan
