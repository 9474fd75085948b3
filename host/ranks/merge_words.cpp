#include "host/ranks/merge_words.h"

#include "host/log/rank_list.h"
#include "host/report/text_layout.h"

namespace numsan {
namespace {

bool one(const std::vector<int64_t>& ranks) { return ranks.size() == 1; }

std::string of_all(const Job& job) { return job.world_size ? " of " + std::to_string(*job.world_size) : ""; }

}  // namespace

std::string ranks_words(const std::vector<int64_t>& ranks) {
    if (ranks.empty()) return "";
    return (one(ranks) ? "rank " : "ranks ") + rank_list(ranks);
}

std::string first_words(const JobStory& story) {
    if (story.own.empty() && story.received.empty()) return "no finding";
    if (story.own.empty() && story.quiet_write_none && story.received.front().may_come_from.size() > 1)
        return "no rank that has a report was first: what the others received may have come from " +
               ranks_words(story.received.front().may_come_from);
    if (story.own.empty())
        return "the rank that was first has no report to the end: what the others received came from " +
               ranks_words(story.received.front().may_come_from);
    const Sighting& first = story.own.front().first;
    return "rank " + std::to_string(first.rank) + of_all(*story.job) + " was first" +
           (story.hosts > 1 ? ", on " + first.report->host : "");
}

std::string received_words(const ReceivedFindings& received, const std::string& operation) {
    const bool single = received.may_come_from.size() == 1;
    const std::string from = received.is_lost() ? (single ? "" : "one of ") + ranks_words(received.may_come_from)
                                                : "rank " + std::to_string(received.origin.rank);
    const std::string count = counted(static_cast<int64_t>(received.sightings.size()), "finding", "findings");
    const std::string ranks = ranks_words(received.ranks());
    return "received from " + from + ": " + ranks +
           (received.came_back() ? (ranks.empty() ? "itself" : ", and it came back") : std::string()) +
           (operation.empty() ? "" : ", at first " + operation + " in step " + grouped(received.first.finding->step)) +
           "; " + count + ", no root cause";
}

std::vector<std::string> rank_remarks(const JobStory& story) {
    std::vector<std::string> out;
    if (!story.not_ended.empty()) {
        const bool single = one(story.not_ended);
        out.push_back(ranks_words(story.not_ended) + " had not ended when " +
                      (single ? "its last report was" : "their last reports were") + " written: " +
                      (single ? "it was killed, or it still runs" : "they were killed, or they still run"));
    }
    if (!story.missing.empty() && story.quiet_write_none) {
        out.push_back(ranks_words(story.missing) + (one(story.missing) ? " has" : " have") +
                      " no report: nothing was found there, or " + (one(story.missing) ? "it was" : "they were") +
                      " killed; with `report_when=always` each rank writes one");
    } else if (!story.missing.empty()) {
        const bool single = one(story.missing);
        out.push_back(ranks_words(story.missing) + (single ? " has" : " have") + " no report: " +
                      (single ? "it was killed before it wrote one, or wrote it elsewhere"
                              : "they were killed before they wrote one, or wrote it elsewhere"));
    }
    if (!story.lossy.empty())
        out.push_back(ranks_words(story.lossy) + ": something was lost, so that silence does not mean health there");
    for (const auto& [status, ranks] : story.failed)
        out.push_back(ranks_words(ranks) + " ended with status " + std::to_string(status));
    return out;
}

std::string count_words(const JobStory& story) {
    std::string out;
    const auto add = [&](const std::string& words) { out += (out.empty() ? "" : "; ") + words; };
    if (!story.own.empty()) add("rank " + std::to_string(story.own.front().first.rank) + " was first");
    if (!story.only_received.empty()) add("only received: " + ranks_words(story.only_received));
    if (!story.quiet.empty()) add("no finding: " + ranks_words(story.quiet));
    const size_t ranks = story.job->ranks.size();
    add("reports of " + std::to_string(ranks) +
        (story.job->world_size ? of_all(*story.job) + (*story.job->world_size == 1 ? " rank" : " ranks")
                               : (ranks == 1 ? " rank" : " ranks")));
    return out;
}

std::string job_words(const Job& job) {
    std::string out = job.job.empty() ? "" : job.launcher + " job " + job.job + ", ";
    if (!job.started.empty()) out += "started " + job.started + ", ";
    const int64_t size = job.world_size.value_or(static_cast<int64_t>(job.ranks.size()));
    out += counted(size, "rank", "ranks") + ", reports ";
    return out + job.ranks.begin()->second.front()->path +
           (job.reports() > 1 ? " and " + std::to_string(job.reports() - 1) + " more" : "");
}

std::vector<std::string> reading_remarks(const SortedReports& sorted) {
    std::vector<std::string> out;
    if (sorted.jobs.size() > 1) {
        std::string by;
        for (const std::string& what : sorted.told_apart_by) by += (by.empty() ? "" : ", ") + what;
        out.push_back("the reports are of " + std::to_string(sorted.jobs.size()) +
                      " runs, which are not merged; they are told apart by " + by);
    }
    size_t silent = 0;
    for (const RankReport* report : sorted.unranked) {
        if (report->findings.empty()) {
            ++silent;
            continue;
        }
        out.push_back(report->path + ": " +
                      counted(static_cast<int64_t>(report->findings.size()), "finding", "findings") +
                      " of a process without a rank, which no rank's is ordered against; `numsan report` shows " +
                      (report->findings.size() == 1 ? "it" : "them"));
    }
    if (silent > 0)
        out.push_back("left out: " + counted(static_cast<int64_t>(silent), "report", "reports") +
                      " without a finding, of " + (silent == 1 ? "a process" : "processes") + " without a rank");
    return out;
}

}  // namespace numsan
