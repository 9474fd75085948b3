#include "host/session/report_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "host/options/report_when.h"
#include "host/process/process_identity.h"
#include "host/process/run_facts.h"
#include "host/report/atomic_file.h"
#include "host/report/json_writer.h"
#include "host/report/rank_error.h"
#include "host/report/report_owner.h"

namespace numsan {

ReportFile::ReportFile(const Options& options, std::string cwd) : options_(options), cwd_(std::move(cwd)) {
    clock_gettime(CLOCK_REALTIME_COARSE, &began_);  // as files are dated
}

/// Ranks of a large job that found nothing write nothing, unless something was lost: then silence says nothing.
bool ReportFile::wanted(const Report& report, bool ended) const {
    if (options_.report == "none" || failed_) return false;
    const bool many = report.run.launch.world_size.value_or(1) > kFewRanks;
    const bool always =
        options_.report_when == ReportWhen::Always || (options_.report_when == ReportWhen::Auto && !many);
    return always || !report.findings.empty() || report.run.tells() ||
           (ended && (report.run.incomplete || report.run.dropped > 0));
}

std::string ReportFile::name(const RunSummary& run) const {
    const PathFacts facts = path_facts(run);
    std::string name = expand_path(options_.report, facts);
    if (aside_.empty()) return name;
    const size_t dot = name.rfind('.');
    const bool extension = dot != name.npos && name.find('/', dot) == name.npos && dot > 0 && name[dot - 1] != '/';
    return name.insert(extension ? dot : name.size(), expand_path(aside_, facts));
}

std::string ReportFile::path(const RunSummary& run) const {
    const std::string shown = name(run);
    return shown.empty() || shown[0] == '/' || cwd_.empty() ? shown : cwd_ + "/" + shown;
}

std::string ReportFile::job_path(const std::string& report) const {
    static constexpr std::string_view kEnding = ".json";
    return (report.ends_with(kEnding) ? report.substr(0, report.size() - kEnding.size()) : report) + ".job";
}

std::optional<std::string> ReportFile::write_job(const RunSummary& run, const std::string& document) const {
    const std::string own = path(run);
    struct stat file {};
    const bool is_file = is_own_ && lstat(own.c_str(), &file) == 0 && S_ISREG(file.st_mode);
    return is_file ? write_atomically(job_path(own), document) : std::nullopt;
}

/// The report of an earlier run has given way to this one's, or to none: what its ranks had found goes, too.
void ReportFile::remove_job_before(const std::string& report) const {
    const std::string there = job_path(report);
    struct stat file {};
    if (lstat(there.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return;
    if (std::pair(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) >= std::pair(began_.tv_sec, began_.tv_nsec)) return;
    std::string text(64, '\0');
    std::ifstream(there, std::ios::binary).read(text.data(), static_cast<std::streamsize>(text.size()));
    if (begins_job_document(text)) unlink(there.c_str());
}

/// A path with the process's number is meant to be one process's own. Containers that share a folder have the same
/// numbers: what another one has written, or is about to, stays.
void ReportFile::step_aside(const RunSummary& run) {
    if (std::exchange(looked_, true) || options_.report.find("%p") == std::string::npos) return;
    const std::string there = path(run);
    struct stat file {};
    if (lstat(there.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_size == 0) return;
    if (owner_of_report(there).has_value() && !is_left_over(there, run)) aside_ = "-%t";
}

/// Where the path has no number of the process, a launcher and its ranks share it: what one of them has found stays,
/// and so does a rank's report where a process that is none has one.
bool ReportFile::belongs_to_another(const Report& report) const {
    const std::string there = path(report.run);
    struct stat file {};
    if (lstat(there.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_size == 0) return false;
    if (std::pair(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) < std::pair(began_.tv_sec, began_.tv_nsec)) return false;
    const std::optional<ReportOwner> owner = owner_of_report(there);
    if (!owner || numsan::is_own(*owner, report.run)) return false;
    return owner->has_findings || (owner->has_rank && !report.run.launch.rank);
}

std::optional<std::string> ReportFile::write(const Report& report) {
    if (!wanted(report, true)) {
        if (!failed_) withdraw(report.run);
        if (!failed_) remove_left_over(report.run);
        return std::nullopt;
    }
    step_aside(report.run);
    if (aside_.empty() && belongs_to_another(report)) {
        is_own_ = false;
        if (report.findings.empty()) return std::nullopt;
        aside_ = "-%p";
    }
    std::optional<std::string> problem = write_atomically(path(report.run), to_json(report));
    is_own_ = !problem;
    if (is_own_) remove_job_before(path(report.run));
    failed_ = problem.has_value();
    return problem;
}

void ReportFile::begin(const Report& report) {
    // A rank that becomes known later would be another file's.
    const bool named = options_.report.find("%r") == std::string::npos || report.run.launch.rank.has_value();
    if (!named) return;
    if (!wanted(report, false)) return remove_left_over(report.run);
    step_aside(report.run);
    const std::string there = path(report.run);
    struct stat file {};
    const bool free = lstat(there.c_str(), &file) != 0 && errno == ENOENT;
    // Pipes and terminals get the last report only.
    if (!free && (!S_ISREG(file.st_mode) || (file.st_size > 0 && !is_left_over(there, report.run)))) return;
    if (write_atomically(there, to_json(report))) return;
    begun_ = free && lstat(there.c_str(), &file) == 0 && S_ISREG(file.st_mode) ? static_cast<uint64_t>(file.st_ino) : 0;
}

/// Only a file that begin() made, and that was not replaced since.
void ReportFile::withdraw(const RunSummary& run) {
    struct stat file {};
    const std::string there = path(run);
    if (begun_ == 0 || lstat(there.c_str(), &file) != 0 || file.st_ino != begun_) return;
    unlink(there.c_str());
    begun_ = 0;
}

/// A report of an earlier run, which this one's would have replaced: it is not taken for this one's.
void ReportFile::remove_left_over(const RunSummary& run) const {
    const std::string there = path(run);
    struct stat file {};
    if (options_.report == "none" || lstat(there.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return;
    if (!is_left_over(there, run)) return;
    unlink(there.c_str());
    remove_job_before(there);
}

void ReportFile::begin_child() {
    looked_ = false;
    aside_.clear();
    is_own_ = false;
    begun_ = 0;
}

}  // namespace numsan
