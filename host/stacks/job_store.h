// The place where all ranks of a job can leave texts: what they found each other by.
#pragma once

#include <string>
#include <vector>

namespace numsan {

/// Asks the program's runtime: slow, and under no lock of ours. `on_own_thread` is called on the thread that asks,
/// before it does. Null: there is none.
struct JobStore {
    /// False: it could not be left there now.
    bool (*leave)(const std::string& text, void (*on_own_thread)()) = nullptr;
    /// What ranks have left so far, in the order in which they did: the first kMostJobTexts.
    std::vector<std::string> (*left)(void (*on_own_thread)()) = nullptr;
};

inline constexpr int kMostJobTexts = 64;

}  // namespace numsan
