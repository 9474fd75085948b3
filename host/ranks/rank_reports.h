// The reports that a merge has read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/ranks/rank_report.h"

namespace numsan {

/// What is said of a finding that many reports have, as the first of them has it.
struct FindingBrief {
    size_t number = 0;  ///< of that report
    std::string severity;
    std::string code;
    std::string title;
    std::string op;
    std::string phase;
    std::string module;
    std::string file;  ///< as that run shows it; empty: no line is known
    int64_t line = 0;
    std::string function;
    std::string text;  ///< of the line
    std::string fingerprint;

    /// "losses.py:31 in criterion", "no source line is known".
    std::string place() const;
};

/// Collects them; memory grows with the findings by little, and not with what reports say of them.
class RankReports : public ReportSink {
  public:
    void add(const SourceReport& report) override;
    void absorb(ReportSink& other) override;
    Skim skim() const override { return Skim::Values; }

    /// In the order of the files.
    std::vector<const RankReport*> reports() const;
    /// Of a finding of one of them.
    const FindingBrief& brief(const RankFinding& finding) const { return briefs_.at(finding.key); }

  private:
    std::vector<std::unique_ptr<RankReport>> reports_;
    std::map<std::string, FindingBrief> briefs_;
};

}  // namespace numsan
