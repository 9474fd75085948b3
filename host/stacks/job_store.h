// The place where all ranks of a job can leave texts: what they found each other by.
#pragma once

#include <string>
#include <vector>

namespace numsan {

inline constexpr int kMostJobTexts = 64;

/// Which of its processes a job is asked by.
struct JobMember {
    int rank;
    int world_size;
    std::string job;  ///< as its launcher names it; may be empty
};

/// Asks the program's runtime: slow, and under no lock of ours. `on_own_thread` is called on the thread that asks,
/// before it does. Nothing is done where the runtime knows this process by another rank. Null: there is none.
struct JobStore {
    /// False: it could not be left there now.
    bool (*leave)(const std::string& text, const JobMember& self, void (*on_own_thread)()) = nullptr;
    /// What ranks have left so far, of the first kMostJobTexts.
    std::vector<std::string> (*left)(const JobMember& self, void (*on_own_thread)()) = nullptr;
};

}  // namespace numsan
