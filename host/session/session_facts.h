// The facts of its process that a session starts from.
#pragma once

#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "host/birth/birth_exchange.h"
#include "host/finding/kernel_launch.h"
#include "host/finding/run_summary.h"
#include "host/process/run_facts.h"

namespace numsan {

/// What only the caller knows about the process.
struct SessionFacts {
    std::string torch_version;
    std::string torch_root;
    std::string standard_library;          ///< the folder of Python's own modules, empty when unknown
    std::string python_version;            ///< empty without Python
    std::string python_path;               ///< empty where it is not known
    std::vector<std::string> blind_spots;  ///< what cannot be seen here, in a user's words

    // What a session asks of its process; a replay answers instead.
    std::optional<RunSummary> run;  ///< none: run_facts()
    bool (*generated_kernels)() = runs_generated_kernels;
    void (*leave)(int status) = _exit;  ///< with `halt`; may return, and the program goes on for a while
    LaunchesOf launches_of = nullptr;   ///< what knows the kernels that ops launched; null: they are not watched
    /// An op was captured into a graph, whose replays ask for its launches; null: as above. May throw std::bad_alloc.
    void (*keep_launches)(const LaunchSpan& span) = nullptr;
    /// What stands between the verdict and the birth notes of the process; null: nothing.
    BirthExchange* (*over_notes)(BirthExchange& of_process) = nullptr;
};

}  // namespace numsan
