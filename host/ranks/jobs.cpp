#include "host/ranks/jobs.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <utility>

namespace numsan {
namespace {

/// Seconds since 1970 of "2026-11-23T10:00:00Z"; none for what is none.
std::optional<int64_t> seconds_of(const std::string& time) {
    std::tm parts{};
    const char* const end = strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    return end == nullptr ? std::nullopt : std::optional<int64_t>(timegm(&parts));
}

int64_t start_of(const RankReport& report) { return seconds_of(report.started).value_or(0); }

/// A process of a rank, with those that ran while it did.
using Life = std::vector<const RankReport*>;
using Lives = std::map<int64_t, std::vector<Life>>;  ///< of each rank, in the order of their starts

bool ran_meanwhile(const RankReport& later, const RankReport& first) {
    if (!later.id.empty() && later.id == first.id) return true;  // it was forked
    if (first.host != later.host) return false;
    const std::optional<int64_t> end = seconds_of(first.ended);  // none: it was killed, or still runs
    const int64_t start = start_of(later);
    return start >= start_of(first) && (!end || start <= *end) && later.pid != first.pid &&
           later.program != first.program;
}

Lives lives_of(std::vector<const RankReport*> reports) {
    std::stable_sort(reports.begin(), reports.end(),
                     [](const auto* a, const auto* b) { return start_of(*a) < start_of(*b); });
    Lives lives;
    for (const RankReport* report : reports) {
        std::vector<Life>& of_rank = lives[*report->rank];
        const auto joined = std::find_if(of_rank.begin(), of_rank.end(),
                                         [&](const Life& life) { return ran_meanwhile(*report, *life.front()); });
        if (joined == of_rank.end())
            of_rank.push_back({report});
        else
            joined->push_back(report);
    }
    return lives;
}

/// As many runs as the rank that is there most often was started; a process is of the one that it started closest to.
std::vector<Job> runs_of(const Lives& lives) {
    const auto most = std::max_element(lives.begin(), lives.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    std::vector<Job> jobs(most->second.size());
    for (const auto& [rank, of_rank] : lives) {
        std::set<size_t> taken;
        for (const Life& life : of_rank) {
            std::optional<size_t> nearest;
            int64_t least = 0;
            for (size_t i = 0; i < jobs.size(); ++i) {
                const int64_t distance = std::llabs(start_of(*life.front()) - start_of(*most->second[i].front()));
                if (taken.count(i) != 0 || (nearest && distance >= least)) continue;
                nearest = i;
                least = distance;
            }
            taken.insert(*nearest);  // there are no more lives of a rank than runs
            jobs[*nearest].ranks[rank] = life;
        }
    }
    return jobs;
}

void describe(Job& job) {
    bool first = true;
    for (const auto& [rank, reports] : job.ranks) {
        const RankReport& own = *reports.front();
        if (first || own.started < job.started) job.started = own.started;
        if (std::exchange(first, false)) {
            job.job = own.job;
            job.launcher = own.launcher;
            job.world_size = own.world_size;
        }
    }
}

}  // namespace

size_t Job::reports() const {
    size_t count = 0;
    for (const auto& [rank, reports] : ranks) count += reports.size();
    return count;
}

SortedReports sort_reports(const std::vector<const RankReport*>& reports) {
    SortedReports sorted;
    std::map<std::pair<std::string, std::optional<int64_t>>, std::vector<const RankReport*>> alike;
    std::set<std::string> jobs;
    std::set<std::optional<int64_t>> sizes;
    for (const RankReport* report : reports) {
        if (!report->rank) {
            sorted.unranked.push_back(report);
            continue;
        }
        alike[{report->job, report->world_size}].push_back(report);
        jobs.insert(report->job);
        sizes.insert(report->world_size);
    }
    bool by_time = false;
    for (const auto& [key, members] : alike) {
        std::vector<Job> runs = runs_of(lives_of(members));
        by_time = by_time || runs.size() > 1;
        for (Job& run : runs) {
            describe(run);
            sorted.jobs.push_back(std::move(run));
        }
    }
    std::stable_sort(sorted.jobs.begin(), sorted.jobs.end(),
                     [](const Job& a, const Job& b) { return a.started < b.started; });
    if (jobs.size() > 1) sorted.told_apart_by.emplace_back("job");
    if (sizes.size() > 1) sorted.told_apart_by.emplace_back("world size");
    if (by_time) sorted.told_apart_by.emplace_back("time of start, as a rank is there more than once");
    return sorted;
}

}  // namespace numsan
