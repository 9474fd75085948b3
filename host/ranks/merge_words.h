// What a merge says of a job, sentence by sentence.
#pragma once

#include <string>
#include <vector>

#include "host/ranks/job_story.h"

namespace numsan {

/// "rank 3", "ranks 0-2"; empty for none.
std::string ranks_words(const std::vector<int64_t>& ranks);

/// "rank 3 of 4 was first, on node1", "no finding", ...
std::string first_words(const JobStory& story);

/// "received from rank 3: ranks 0-2, at first by `c10d::allreduce_` 8 ...; 3 findings, no root cause".
/// `operation`: received_operation_text() of the first of them, or empty.
std::string received_words(const ReceivedFindings& received, const std::string& operation);

/// Of ranks that are missing, had not ended, lost something, or failed: one sentence each.
std::vector<std::string> rank_remarks(const JobStory& story);

/// "no finding: ranks 4-7; reports of 8 of 8 ranks".
std::string count_words(const JobStory& story);

/// "torchrun job none node1 29500, started 2026-11-23T10:00:00Z, 8 ranks, reports a.json and 7 more": of each of
/// several.
std::string job_words(const Job& job);

/// Of what was read besides: processes without a rank; that there are several jobs, and by what they were told apart.
std::vector<std::string> reading_remarks(const SortedReports& sorted);

}  // namespace numsan
