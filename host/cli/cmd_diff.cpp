// numsan diff: what is new in the findings of a run, or of a night's runs.
#include <memory>

#include "host/changes/changes_document.h"
#include "host/changes/finding_changes.h"
#include "host/cli/commands.h"
#include "host/format/known_findings.h"

namespace numsan::cli {
namespace {

/// Null where something could not be read, which was said.
std::unique_ptr<ReportSink> read_side(const std::string& path) {
    std::unique_ptr<ReportSink> sink;
    const ReadReports read = read_reports(
        {path}, [] { return std::make_unique<KnownFindings>(); }, sink);
    if (complain_of(read)) return nullptr;
    return sink;
}

}  // namespace

int diff(const std::string& base, const std::string& now, const std::string& format, const std::string& output,
         const std::string& color) {
    const auto known = format_of("diff", format);
    if (!known) {
        complain(unknown_format("diff", format));
        return kUsage;
    }
    const std::unique_ptr<ReportSink> before = read_side(base);
    const std::unique_ptr<ReportSink> after = read_side(now);
    if (before == nullptr || after == nullptr) return kUsage;
    const ComparedReports compared{base, now, dynamic_cast<KnownFindings&>(*before),
                                   dynamic_cast<KnownFindings&>(*after)};
    const std::vector<ChangedFinding> changes = finding_changes(compared.base, compared.now);
    const int written = write_output(output, changes_document(*known, compared, changes, output_style(output, color)));
    if (written != kOk) return written;
    return any_news(changes) ? kNews : kOk;
}

}  // namespace numsan::cli
