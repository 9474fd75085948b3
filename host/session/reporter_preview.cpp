// What a debugger's user is shown of findings, those that are not made yet included.
#include "host/report/json_writer.h"
#include "host/report/text.h"
#include "host/session/finding_builder.h"
#include "host/session/reporter.h"

namespace numsan {

std::optional<Finding> Reporter::finding_of(BirthId birth) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = finding_of_.find(birth);
    return at != finding_of_.end() ? std::optional(report_.findings[at->second]) : std::nullopt;
}

std::optional<Finding> Reporter::preview(const Birth& birth, const StackSource& stacks, const LiveNames& names) const {
    EscapedBirth escaped;
    escaped.birth = birth;
    const std::lock_guard<std::mutex> lock(mutex_);
    Finding finding = build_finding(escaped, stacks, ranges_, names, places_);
    finding.first = report_.findings.empty();
    finding.rank = report_.run.launch.rank;
    if (allow_.match(finding, start_cwd_) != nullptr) return std::nullopt;
    return finding;
}

std::string Reporter::text_of(const Finding& finding, bool escape_known) const {
    const TextStyle style = text_style();
    return escape_known ? render_finding(finding, style) : render_birth(finding, style);
}

std::string Reporter::document_of(const Finding& finding, bool escape_known) {
    return escape_known ? finding_json(finding) : birth_json(finding);
}

}  // namespace numsan
