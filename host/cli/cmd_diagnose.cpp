// numsan diagnose: ranked training faults, from the signals that stand in a report.
#include "host/cli/commands.h"
#include "host/diagnosis/diagnosis_document.h"
#include "host/diagnosis/learned/run_features.h"
#include "host/diagnosis/ranking.h"
#include "host/format/formats.h"
#include "host/report/json_fields.h"
#include "host/report/json_reader.h"
#include "host/report/json_writer.h"

namespace numsan::cli {
namespace {

/// Complains where there are none.
std::optional<Signals> signals_of(const std::string& file, ReadResult& read) {
    read = read_report(file);
    if (!read.ok()) {
        complain(read.error);
        return {};
    }
    auto signals = read_signals(fields::at(read.document, "diagnosis"));
    if (!signals) complain(file + ": it has no training signals: `numsan run --diagnose 1` measures them");
    return signals;
}

}  // namespace

int diagnose(const std::string& file, const std::string& format, const std::string& output, const std::string& color) {
    const auto known = format_of("diagnose", format);
    if (!known) {
        complain(unknown_format("diagnose", format));
        return kUsage;
    }
    ReadResult read;
    const auto signals = signals_of(file, read);
    if (!signals) return kUsage;
    const std::vector<Fault> faults = rank_faults(*signals);
    TextStyle style = output_style(output, color);
    style.cwd = fields::text(fields::at(read.document, "run"), "cwd");
    std::string text = document_text(faults_document(faults));
    if (*known != Format::Json) {
        text = render_early_warnings(signals->warnings, style);
        if (text.empty() || !faults.empty()) text += render_diagnosis(*signals, faults, style);
    }
    const int written = write_output(output, text);
    return written == kOk && !(faults.empty() && signals->warnings.empty()) ? kNews : written;
}

int diagnosed_features(const std::string& file, const std::string& output) {
    ReadResult read;
    const auto signals = signals_of(file, read);
    if (!signals) return kUsage;
    const RunFeatures features = features_of(*signals);
    nlohmann::ordered_json out;
    for (const RunFeature& one : kRunFeatures) out[one.key] = fields::finite_or_null(features.*one.value);
    return write_output(output, document_text(out));
}

}  // namespace numsan::cli
