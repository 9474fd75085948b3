#include "host/ops/collectives.h"

#include <string_view>

#include "host/ops/op_traits.h"

namespace numsan {
namespace {

struct Row {
    std::string_view name;
    CollectiveWay way;
    int8_t peer;
    int8_t tag;
};

constexpr Row kRows[] = {
#define NUMSAN_COLLECTIVE(name, way, peer, tag) {name, CollectiveWay::way, peer, tag},
#include "host/ops/collectives.def"
#undef NUMSAN_COLLECTIVE
};

}  // namespace

CollectiveRoute route_of(const OpEvent& event) {
    CollectiveRoute route;
    const std::string_view op = plain_op_name(event.op->name);
    for (const Row& row : kRows) {
        if (op != row.name) continue;
        route.way = row.way;
        if (row.peer >= 0 && row.peer < event.scalar_count) route.peer = static_cast<int32_t>(event.scalars[row.peer]);
        if (row.tag >= 0 && row.tag < event.scalar_count) route.tag = static_cast<int64_t>(event.scalars[row.tag]);
    }
    return route;
}

bool is_origin(const OpEvent& event, const CollectiveRoute& route) {
    return route.way == CollectiveWay::OneToAll && event.communicator != nullptr && route.peer >= 0 &&
           event.communicator->rank == route.peer;
}

}  // namespace numsan
