// The file of this process's report: what it is called, and when it is written.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "host/finding/run_summary.h"
#include "host/options/options.h"

namespace numsan {

/// Not thread-safe: the reporter's lock protects it. Paths are relative to the folder in which the program started.
class ReportFile {
  public:
    /// `options` outlives this. What is older than this object was left by an earlier run.
    ReportFile(const Options& options, std::string cwd);

    /// The first report of a run, which has not ended. Who cannot write says so at the end.
    void begin(const Report& report);
    /// There is nothing to report after all: the file of begin() goes again.
    void withdraw(const RunSummary& run);
    /// Writes it anew, if the option `report_when` asks for one and no report of another process stands there. What
    /// went wrong; nothing is written after that.
    std::optional<std::string> write(const Report& report);

    /// There is a file, and it is this process's.
    bool is_own() const { return is_own_; }
    /// As people see it.
    std::string name(const RunSummary& run) const;
    /// Writes a job_document() beside it: "rank-0.job" beside "rank-0.json". What went wrong; nothing is written
    /// where the report is in no file.
    std::optional<std::string> write_job(const RunSummary& run, const std::string& document) const;

    /// A forked child has a file of its own.
    void begin_child();

  private:
    bool wanted(const Report& report, bool ended) const;
    std::string path(const RunSummary& run) const;
    std::string job_path(const std::string& report) const;
    void remove_left_over(const RunSummary& run) const;
    void remove_job_before(const std::string& report) const;
    void step_aside(const RunSummary& run);
    bool belongs_to_another(const Report& report) const;

    const Options& options_;
    const std::string cwd_;
    timespec began_{};
    std::string
        aside_;  ///< the report of another process stands at the path: the name ends with that, see expand_path()
    bool looked_ = false;  ///< whether one stands there
    bool failed_ = false;
    bool is_own_ = false;
    uint64_t begun_ = 0;  ///< the file that begin() made, 0: none
};

}  // namespace numsan
