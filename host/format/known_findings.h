// The findings of many reports, one for each fingerprint.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/format/report_files.h"
#include "host/report/finding_words.h"
#include "host/report/json_fields.h"

namespace numsan {

/// Where a finding stands: number of the report, number in it.
using FindingPlace = std::pair<size_t, size_t>;

/// A finding as its first report has it, and what the others add. Owns all it has.
struct KnownFinding {
    fields::Json document;
    FindingPlace place;                ///< of the document
    std::string path;                  ///< of that report
    std::string cwd;                   ///< of that run
    std::string severity;              ///< the worst of all
    size_t reports = 0;                ///< that have it
    fields::JsonInteger first_step{};  ///< the earliest of all
    std::set<int64_t> ranks;
};

/// What is the same of one finding in all reports: its fingerprint, which one of a foreign writer may lack.
std::string finding_key(const fields::Json& finding);

/// error > warning > info > anything else.
int severity_rank(const std::string& severity);

/// What is said of the runs that were read, where they are summed up.
struct KnownRun {
    std::string path;
    fields::Json run;
    std::string version;
    std::string verdict;
    bool suppressed = false;  ///< its allow-list left out findings
};

/// Collects them; memory grows with the fingerprints and, by a little, with the reports.
class KnownFindings : public ReportSink {
  public:
    void add(const SourceReport& report) override;
    void absorb(ReportSink& other) override;

    /// In the order of the reports and of the findings in them.
    std::vector<const KnownFinding*> findings() const;

    /// In the order of the reports.
    const std::map<size_t, KnownRun>& runs() const { return runs_; }

    size_t incomplete_runs() const;
    size_t suppressed_runs() const;

  private:
    std::map<std::string, KnownFinding> by_key_;
    std::map<size_t, KnownRun> runs_;
};

/// "rank 3", "ranks 0-3, 7"; empty where none is known.
std::string ranks_text(const std::set<int64_t>& ranks);

/// "src/train.py" of `python src/train.py --lr 1`, as it was given; empty where it is no file (-m, -c).
std::string program_file(const fields::Json& run);

/// "train.py" of `python train.py --lr 1`, "-m pkg" of `python -m pkg`; "unknown program" where argv is empty.
std::string program_of(const fields::Json& run);

/// The title without "first NaN of this run: ", which is of one run.
std::string title_of_any_run(const fields::Json& finding);

}  // namespace numsan
