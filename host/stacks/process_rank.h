// Which process of a distributed program this is.
#pragma once

#include <optional>

namespace numsan {

struct ProcessRank {
    int rank;
    int world_size;
};

/// None where the program has no process group. Asks the program's runtime: slow, and under no lock of ours.
/// `on_own_thread` is called on the thread that asks, before it does.
using AskRank = std::optional<ProcessRank> (*)(void (*on_own_thread)());

}  // namespace numsan
