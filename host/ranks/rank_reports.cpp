#include "host/ranks/rank_reports.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/format/known_findings.h"
#include "host/report/json_fields.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

FindingBrief brief_of(const Json& finding, size_t number, const std::string& cwd) {
    const Json& place = at(finding, "location");
    FindingBrief brief;
    brief.number = number;
    brief.severity = fields::text(finding, "severity");
    brief.code = fields::text(finding, "code");
    brief.title = title_of_any_run(finding);
    brief.op = fields::text(finding, "op");
    brief.phase = fields::text(finding, "phase");
    brief.module = fields::text(finding, "module");
    brief.fingerprint = fields::text(finding, "fingerprint");
    if (!place.is_object()) return brief;
    brief.file = shown_file(place, cwd);
    brief.line = static_cast<int64_t>(fields::number(place, "line"));
    brief.function = fields::text(place, "function");
    brief.text = fields::text(place, "code");
    return brief;
}

}  // namespace

std::string FindingBrief::place() const {
    if (file.empty()) return "no source line is known";
    return file + ":" + std::to_string(line) + (function.empty() ? "" : " in " + function);
}

void RankReports::add(const SourceReport& report) {
    reports_.push_back(std::make_unique<RankReport>(rank_report(report)));
    const std::string cwd = fields::text(at(report.document, "run"), "cwd");
    const Json& documents = fields::list(report.document, "findings");
    for (const RankFinding& finding : reports_.back()->findings) {
        const auto known = briefs_.find(finding.key);
        if (known != briefs_.end() && known->second.number <= report.number) continue;
        briefs_[finding.key] = brief_of(documents[finding.position], report.number, cwd);
    }
}

void RankReports::absorb(ReportSink& other) {
    auto& from = dynamic_cast<RankReports&>(other);
    for (auto& report : from.reports_) reports_.push_back(std::move(report));
    from.reports_.clear();
    for (auto& [key, brief] : from.briefs_) {
        const auto [known, added] = briefs_.try_emplace(key, std::move(brief));
        if (!added && brief.number < known->second.number) known->second = std::move(brief);
    }
    from.briefs_.clear();
}

std::vector<const RankReport*> RankReports::reports() const {
    std::vector<const RankReport*> all;
    for (const auto& report : reports_) all.push_back(report.get());
    std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->number < b->number; });
    return all;
}

}  // namespace numsan
