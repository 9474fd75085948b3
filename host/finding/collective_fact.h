// What went to other ranks, or came from them, in a collective operation. Plain data, owns its strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/ops/collectives.h"

namespace numsan {

struct CollectiveFact {
    std::string op;           ///< "c10d::allreduce_"
    std::string group;        ///< Communicator::name
    std::string description;  ///< Communicator::description
    /// The same in all ranks of the group, from 1: of the group's operations, of a send or a receive of those between
    /// the two ranks, in that direction and with that tag. 0: not known.
    uint64_t number = 0;
    std::optional<int32_t> peer;  ///< the one rank of the group that it went to or came from; none: all others
    std::optional<int64_t> tag;   ///< of a send or a receive
    std::string ranks;            ///< that it went to or came from, of the job: see rank_list(); empty: not known
    int64_t step = 0;
    OpSeq seq{};
};

/// How many places of a finding say where it was sent: later ones are left out.
inline constexpr size_t kMostSent = 64;

/// One call: `number` is the one that CollectiveLog gave it.
struct CollectiveCall {
    const OpInfo* op = nullptr;
    const Communicator* group = nullptr;
    uint64_t number = 0;
    CollectiveRoute route{};
    int64_t step = 0;
    OpSeq seq{};
};

/// Where values of this rank went. `call.group` is there. [MT]
CollectiveFact sent_fact(const CollectiveCall& call);

/// Where values of this rank came from: `from` is the rank of the group, where that is known better than by the call;
/// -1: it is not. [MT]
CollectiveFact received_fact(const CollectiveCall& call, int64_t from);

}  // namespace numsan
