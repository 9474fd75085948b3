// The first error of a rank, as it tells it to the other ranks of its job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/finding/run_summary.h"

namespace numsan {

/// Owns its strings.
struct RankError {
    int64_t rank = 0;
    int64_t step = 0;
    bool counts_steps = false;  ///< a step of its rank had ended
    std::string found_at;       ///< RFC 3339, UTC
    /// How many operations of each group of its rank had begun before; none: not known.
    std::optional<std::map<std::string, int64_t>> begun;
    std::string host;
    std::string report;    ///< its file, as people see it there; empty: none
    std::string code;      ///< "error[NS103]"
    std::string title;     ///< "NaN: `aten::log` left its domain in 2 of 3 values"
    std::string place;     ///< "losses.py:31 in criterion"; empty: no line is known
    std::string document;  ///< all of it as JSON, on one line

    /// Known to have been before another rank's: by the operations of groups that both are in, and where those are as
    /// many by the steps, if both ranks count them. Without such a group nothing is known.
    bool is_before(const RankError& other) const;
};

/// Of a finding of this process; `now` is RFC 3339, UTC. [MT]
RankError rank_error(Finding finding, const RunSummary& run, const std::string& report, const std::string& now);

/// Of the document of another rank's; none where it is none, or damaged. [MT]
std::optional<RankError> rank_error_of(const std::string& document);

/// Errors of a job as a document, "numsan.job/1". [MT]
std::string job_document(const RunSummary& run, const std::vector<RankError>& errors);

/// Of a text that begins a file. [MT]
bool begins_job_document(const std::string& text);

}  // namespace numsan
