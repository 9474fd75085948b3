// The reports of many ranks as one document.
#pragma once

#include <string>
#include <vector>

#include "host/format/formats.h"
#include "host/ranks/job_story.h"
#include "host/report/text_layout.h"

namespace numsan {

/// What was read, and what became of it: a story for each job.
struct MergedReports {
    const RankReports& reports;
    const SortedReports& sorted;
    std::vector<JobStory> stories;
};

/// In a format that the command `merge` knows; ends with a newline. Reads the reports of the first rank, and of the
/// first that received a value, once more. [MT]
std::string merge_document(Format format, const MergedReports& merged, const TextStyle& style);

}  // namespace numsan
