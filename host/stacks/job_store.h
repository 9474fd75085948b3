// The place where all ranks of a job can leave texts: what they found each other by.
#pragma once

#include <string>
#include <vector>

#include "host/stacks/process_rank.h"

namespace numsan {

inline constexpr int kMostJobTexts = 64;

/// Asks the program's runtime: slow, and under no lock of ours. `on_own_thread` is called on the thread that asks,
/// before it does. Nothing is done where the runtime knows this process by another rank. Null: there is none.
struct JobStore {
    /// False: it could not be left there now.
    bool (*leave)(const std::string& text, const ProcessRank& self, void (*on_own_thread)()) = nullptr;
    /// What ranks have left so far, of the first kMostJobTexts.
    std::vector<std::string> (*left)(const ProcessRank& self, void (*on_own_thread)()) = nullptr;
};

}  // namespace numsan
