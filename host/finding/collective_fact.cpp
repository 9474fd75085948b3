#include "host/finding/collective_fact.h"

#include <algorithm>
#include <vector>

#include "host/log/rank_list.h"

namespace numsan {
namespace {

CollectiveFact fact_of(const CollectiveCall& call, int64_t peer) {
    const Communicator& group = *call.group;
    CollectiveFact fact;
    fact.op = call.op->name;
    fact.group = group.name;
    fact.description = group.description;
    fact.number = call.number;
    if (peer >= 0 && peer < group.size) fact.peer = static_cast<int32_t>(peer);
    if (call.route.between_two()) fact.tag = call.route.tag;
    fact.step = call.step;
    fact.seq = call.seq;
    if (group.ranks == nullptr) return fact;
    std::vector<int64_t> ranks;
    for (int32_t i = 0; i < group.size; ++i) {
        if (fact.peer ? i == *fact.peer : i != group.rank) ranks.push_back(group.ranks[i]);
    }
    std::sort(ranks.begin(), ranks.end());
    fact.ranks = rank_list(ranks);
    return fact;
}

}  // namespace

CollectiveFact sent_fact(const CollectiveCall& call) {
    const CollectiveWay way = call.route.way;
    const bool to_one = way == CollectiveWay::AllToOne || way == CollectiveWay::Send;
    return fact_of(call, to_one ? call.route.peer : -1);
}

CollectiveFact received_fact(const CollectiveCall& call, int64_t from) {
    const CollectiveWay way = call.route.way;
    const bool from_one = way == CollectiveWay::OneToAll || way == CollectiveWay::Receive;
    return fact_of(call, from >= 0 ? from : from_one ? call.route.peer : -1);
}

}  // namespace numsan
