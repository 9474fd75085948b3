// The first error of a rank, as it tells it to the other ranks of its job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/finding/run_summary.h"

namespace numsan {

/// Owns its strings.
struct RankError {
    int64_t rank = 0;
    int64_t step = 0;
    std::string host;
    std::string report;    ///< its file, as people see it there; empty: none
    std::string code;      ///< "error[NS103]"
    std::string title;     ///< "first NaN of this run: `aten::log` left its domain in 2 of 3 values"
    std::string place;     ///< "losses.py:31 in criterion"; empty: no line is known
    std::string document;  ///< all of it as JSON, on one line

    bool is_before(const RankError& other) const { return step != other.step ? step < other.step : rank < other.rank; }
};

/// Of a finding of this process. [MT]
RankError rank_error(Finding finding, const RunSummary& run, const std::string& report);

/// Of the document of another rank's; none where it is none, or damaged. [MT]
std::optional<RankError> rank_error_of(const std::string& document);

/// Errors of a job as a document, "numsan.job/1". [MT]
std::string job_document(const RunSummary& run, const std::vector<RankError>& errors);

/// The file that has it, beside the report of rank 0. It is no report.
inline constexpr char kJobFile[] = "numsan-job.json";

}  // namespace numsan
