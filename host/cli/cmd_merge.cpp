// numsan merge: the reports of a job's ranks as one: which rank was first, and who only received.
#include <memory>

#include "host/cli/commands.h"
#include "host/format/formats.h"
#include "host/ranks/merge_document.h"

namespace numsan::cli {

int merge(const std::vector<std::string>& files, const std::string& format, const std::string& output,
          const std::string& color) {
    const auto known = format_of("merge", format);
    if (!known) {
        complain(unknown_format("merge", format));
        return kUsage;
    }
    std::unique_ptr<ReportSink> sink;
    const ReadReports read = read_reports(
        files, [] { return std::make_unique<RankReports>(); }, sink);
    if (complain_of(read)) return kUsage;
    const auto& reports = dynamic_cast<const RankReports&>(*sink);
    const SortedReports sorted = sort_reports(reports.reports());
    if (sorted.jobs.empty()) {
        complain(files.front() + ": no report in it says which rank it is of; `numsan report` shows them");
        return kUsage;
    }
    MergedReports merged{reports, sorted, {}};
    for (const Job& job : sorted.jobs) merged.stories.push_back(story_of(job));
    return write_output(output, merge_document(*known, merged, output_style(output, color)));
}

}  // namespace numsan::cli
