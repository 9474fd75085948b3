// OpenMetrics 1.0 text: what a dashboard plots and an alert asks of finished runs.
#include <array>
#include <cmath>
#include <map>

#include "host/format/converters.h"
#include "host/format/known_findings.h"
#include "host/format/parts.h"
#include "host/log/format.h"
#include "host/report/json_fields.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::list;

/// A metric family. All samples of one stand together.
struct Family {
    const char* name;
    const char* type;
    const char* unit;
    const char* help;
};

enum FamilyId { kRun, kFindings, kByCode, kSteps, kOps, kScanned, kVerdict, kWall, kScan, kShare, kFamilies };

constexpr std::array<Family, kFamilies> kTable{{
    {"numsan_run", "info", "", "The run that a report is of."},
    {"numsan_findings", "gauge", "", "Findings by severity."},
    {"numsan_findings_by_code", "gauge", "", "Findings by code of the mechanism and root cause."},
    {"numsan_steps", "gauge", "", "Finished optimizer steps."},
    {"numsan_ops", "gauge", "", "Operators that wrote something."},
    {"numsan_ops_scanned", "gauge", "", "Operators whose outputs were read."},
    {"numsan_verdict", "stateset", "", "The verdict of the report."},
    {"numsan_wall_seconds", "gauge", "seconds", "How long the run took."},
    {"numsan_scan_seconds", "gauge", "seconds", "How long reading values in host memory took."},
    {"numsan_scan_ratio", "gauge", "ratio", "The share of the run that reading values in host memory took."},
}};

using Samples = std::array<std::string, kFamilies>;

std::string escaped(const std::string& value) {
    std::string out;
    for (const char c : value) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n') {
            out += "\\n";
        } else {
            out += c;
        }
    }
    return out;
}

std::string label(const std::string& name, const std::string& value) {
    return value.empty() ? "" : "," + name + "=\"" + escaped(value) + "\"";
}

class OpenMetricsConverter : public PartsConverter<Samples> {
  public:
    std::string document() override {
        std::string out;
        for (size_t i = 0; i < kFamilies; ++i) {
            const Family& family = kTable[i];
            const std::string name = family.name;
            out += "# TYPE " + name + " " + family.type + "\n";
            if (*family.unit != '\0') out += "# UNIT " + name + " " + family.unit + "\n";
            out += "# HELP " + name + " " + family.help + "\n";
            for (const auto& [number, samples] : parts()) out += samples[i];
        }
        return out + "# EOF\n";
    }

  protected:
    Samples part_of(const SourceReport& report) const override {
        const Json& run = at(report.document, "run");
        const auto rank = fields::integer(at(run, "rank"));
        const std::string labels = "report=\"" + escaped(fields::clean(report.path)) + "\"" +
                                   label("program", program_of(run)) + label("rank", rank ? digits(*rank) : "");
        Samples out;
        const auto sample = [&](FamilyId family, const std::string& more, const std::string& value,
                                const char* suffix = "") {
            out[family] += kTable[family].name + std::string(suffix) + "{" + labels + more + "} " + value + "\n";
        };
        const auto count = [&](FamilyId family, const Json& value) {
            if (const auto exact = fields::integer(value)) sample(family, "", digits(*exact));
        };
        sample(kRun,
               label("host", fields::text(run, "host")) + label("tier", fields::text(run, "tier")) +
                   label("version", fields::text(at(report.document, "tool"), "version")) +
                   label("torch", fields::text(at(run, "framework"), "version")),
               "1", "_info");
        for (const auto& [labels_of, number] : severities(report.document)) {
            sample(kFindings, labels_of, std::to_string(number));
        }
        for (const auto& [labels_of, number] : codes(report.document)) {
            sample(kByCode, labels_of, std::to_string(number));
        }
        count(kSteps, at(run, "steps"));
        count(kOps, at(at(report.document, "coverage"), "ops"));
        count(kScanned, at(at(report.document, "coverage"), "scanned"));
        const std::string verdict = fields::text(report.document, "verdict");
        for (const char* state : {"clean", "findings", "incomplete"}) {
            sample(kVerdict, label("numsan_verdict", state), verdict == state ? "1" : "0");
        }
        const auto wall = fields::real(at(report.document, "cost"), "wall_s");
        const auto scan = fields::real(at(report.document, "cost"), "scan_s");
        if (wall && std::isfinite(*wall)) sample(kWall, "", fixed(*wall, 3));
        if (scan && std::isfinite(*scan)) sample(kScan, "", fixed(*scan, 3));
        if (wall && scan && *wall > 0 && std::isfinite(*scan / *wall)) sample(kShare, "", fixed(*scan / *wall, 5));
        return out;
    }

  private:
    using Counts = std::map<std::string, size_t>;  // labels -> findings

    static Counts severities(const Json& document) {
        Counts counts;
        for (const char* severity : {"error", "warning", "info"}) counts[label("severity", severity)] = 0;
        for (const Json& finding : list(document, "findings")) {
            const std::string severity = fields::text(finding, "severity");
            ++counts[label("severity", severity.empty() ? "unknown" : severity)];
        }
        return counts;
    }

    static Counts codes(const Json& document) {
        Counts counts;
        for (const Json& finding : list(document, "findings")) {
            ++counts[label("code", fields::text(finding, "code")) +
                     label("category", fields::text(at(finding, "category"), "id"))];
        }
        return counts;
    }
};

}  // namespace

std::unique_ptr<Converter> open_metrics_converter() { return std::make_unique<OpenMetricsConverter>(); }

}  // namespace numsan
