// Everything a report says besides its findings. Plain data, owns its strings; field names follow the report schema.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/finding/finding.h"
#include "host/finding/slow/slow_run.h"

namespace numsan {

/// A device whose tensors were seen.
struct DeviceFacts {
    int index = 0;
    std::string name;
    std::string compute_capability;  ///< "9.0"
};

/// How a launcher numbered the process: see host/process/launchers.def.
struct LaunchFacts {
    std::optional<int> rank;
    std::optional<int> world_size;
    std::optional<int> local_rank;  ///< among the ranks of its host
    std::optional<std::string> launcher;
    std::optional<std::string> job;  ///< the same in all ranks of one start of a job, another in most others
};

/// A group of ranks with which the process has called collective operations.
struct GroupFacts {
    std::string name;
    std::string description;
    int rank = 0;  ///< of this process in it
    int size = 0;
    std::string ranks;        ///< of the job: see rank_list(); empty: not known
    int64_t collectives = 0;  ///< operations of the whole group that have begun
};

struct RunSummary {
    std::string version;
    std::optional<std::string> commit;  ///< none: built outside of a repository
    std::string run_id;                 ///< RFC 4122 text form
    std::vector<std::string> argv;
    std::string cwd;
    int64_t pid = 0;
    std::string process;  ///< see process_identity(); empty: not known
    std::string host;
    LaunchFacts launch;
    std::vector<GroupFacts> groups;
    std::string started;  ///< RFC 3339, UTC
    std::optional<std::string> ended;
    std::optional<int> exit_status;
    std::optional<std::string> signal;
    std::optional<std::string> framework_version;
    std::optional<std::string> python_version;
    std::optional<std::string> python_path;      ///< of its interpreter
    std::map<std::string, std::string> options;  ///< the ones that differ from their default
    std::string tier = "full";                   ///< the least that holds wherever tensors were seen
    std::map<std::string, std::string> tiers;    ///< by the kind of device: cpu, cuda
    std::vector<DeviceFacts> devices;
    int64_t steps = 0;

    int64_t ops = 0;
    int64_t scanned = 0;
    int64_t bytes = 0;
    std::map<std::string, int64_t> skipped;
    int64_t dropped = 0;
    std::map<std::string, int64_t> forgotten;  ///< what gave way to newer ones of its kind -> how many
    std::vector<std::string> blind_spots;
    std::optional<int64_t> launches;         ///< of kernels and graphs, where they were counted
    std::map<std::string, int64_t> kernels;  ///< the same by name

    double wall_s = 0;
    std::optional<double> hook_s;
    std::optional<double> scan_s;
    std::optional<int64_t> host_bytes;
    std::optional<int64_t> device_bytes;

    bool incomplete = false;  ///< something was lost: the verdict must say so
    std::string lost;         ///< what, in one line, where it was not said yet

    /// Sections of the report that another part makes: their names and their JSON.
    std::map<std::string, std::string> sections;
    bool faulty = false;  ///< one of them says that something is wrong

    /// Whether it says something without a finding: the report is worth writing.
    bool tells() const { return faulty || (slow && !slow->findings.empty()); }

    int64_t births = 0;
    int64_t escaped = 0;
    int64_t absorbed = 0;
    int64_t scaler_skips = 0;                   ///< steps that loss scalers skipped
    std::vector<int64_t> skipped_steps;         ///< which, the first of them
    std::optional<SlowRun> slow;                ///< at the end of a run with the option `perf`
    std::map<std::string, int64_t> suppressed;  ///< allow-list rule -> count, 0 for one that matched nothing

    /// Something was lost: silence does not mean health.
    void lose(const std::string& what) {
        incomplete = true;
        lost = what;
        blind_spots.push_back(what);
    }
};

struct Report {
    RunSummary run;
    std::vector<Finding> findings;
};

}  // namespace numsan
