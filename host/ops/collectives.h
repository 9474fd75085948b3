// Between which ranks the values of a collective operation go.
#pragma once

#include <cstdint>

#include "host/base/adapter_abi.h"

namespace numsan {

enum class CollectiveWay : uint8_t {
    AllToAll,  ///< what an operation does of which nothing is known, too
    OneToAll,
    AllToOne,
    Send,
    Receive,
};

/// Of one call of it.
struct CollectiveRoute {
    CollectiveWay way = CollectiveWay::AllToAll;
    int32_t peer = -1;  ///< the one rank, among those of the group; -1: there is none, or it is not known
    int64_t tag = 0;

    /// Two ranks know of the call, so that it has no place among the operations of the whole group.
    bool between_two() const { return way == CollectiveWay::Send || way == CollectiveWay::Receive; }
};

/// [MT]
CollectiveRoute route_of(const OpEvent& event);

/// Whether this rank is the one that a OneToAll comes from. False where that is not known.
bool is_origin(const OpEvent& event, const CollectiveRoute& route);

}  // namespace numsan
