// The lines at the end of a run, from the report's document.
#include <algorithm>
#include <vector>

#include "host/report/json_fields.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"
#include "host/report/text_layout.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::JsonInteger;
using fields::list;
using fields::number;

std::string reason_text(const std::string& reason, JsonInteger count) {
    if (reason == "tier") return "left out by the tier";
    const bool noun = reason == "view" || reason == "allocation" || reason == "collective";
    return noun && count != 1 ? reason + "s" : reason;
}

std::string skipped_text(const Json& skipped) {
    if (!skipped.is_object()) return "";
    std::vector<std::pair<JsonInteger, std::string>> reasons;
    for (const auto& [reason, count] : skipped.items()) {
        const JsonInteger skips = fields::integer(count).value_or(0);
        if (skips > 0) reasons.emplace_back(skips, fields::clean(reason));
    }
    std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string out;
    for (const auto& [count, reason] : reasons) {
        out += (out.empty() ? " (" : ", ") + grouped(count) + " " + reason_text(reason, count);
    }
    return out.empty() ? out : out + ")";
}

std::string first_line(const Json& report) {
    const Json& coverage = at(report, "coverage");
    const size_t findings = list(report, "findings").size();
    const std::string what =
        findings == 0 ? "no finding" : counted(static_cast<int64_t>(findings), "finding", "findings");
    std::string out = what + " in " + counted(number(at(report, "run"), "steps"), "step", "steps") + "; " +
                      grouped(number(coverage, "scanned")) + " of " + grouped(number(coverage, "ops")) +
                      " ops scanned" + skipped_text(at(coverage, "skipped"));
    const JsonInteger absorbed = number(at(report, "noted"), "absorbed");
    if (absorbed > 0) out += "; " + counted(absorbed, "non-finite value", "non-finite values") + " stayed masked";
    return out;
}

std::string incomplete_line(const Json& report) {
    if (fields::text(report, "verdict") != "incomplete") return "";
    const JsonInteger dropped = number(at(report, "coverage"), "dropped");
    const std::string lost =
        dropped > 0 ? counted(dropped, "record was", "records were") + " lost" : "something was lost";
    return "incomplete: " + lost + ", so silence does not mean health here";
}

std::string unmatched_rules(const Json& report) {
    std::string out;
    for (const Json& entry : list(report, "suppressed")) {
        if (number(entry, "count", 1) == 0) out += (out.empty() ? "" : ", ") + fields::text(entry, "rule");
    }
    return out.empty() ? out : "allow-list rules that matched nothing: " + out;
}

}  // namespace

std::string render_summary(const Json& report, const TextStyle& style, const std::string& report_path) {
    const std::string prefix = inked("numsan", Ink::Strong, style) + ": ";
    std::string out = prefix + first_line(report) + "\n";
    auto add = [&](const std::string& line) {
        if (!line.empty()) out += prefix + line + "\n";
    };
    add(incomplete_line(report));
    for (const Json& spot : list(at(report, "coverage"), "blind_spots")) {
        if (spot.is_string()) add("not seen: " + fields::clean(spot.get<std::string>()));
    }
    add(unmatched_rules(report));
    const Json& findings = list(report, "findings");
    const std::string explain =
        findings.empty() ? "" : "`numsan explain " + fields::text(findings[0], "code") + "` says more";
    if (!report_path.empty()) {
        add("report in " + fields::clean(report_path) + (explain.empty() ? "" : "; " + explain));
    } else {
        add(explain);
    }
    return out;
}

std::string render_summary(const Report& report, const TextStyle& style, const std::string& report_path) {
    return render_summary(report_document(report), style, report_path);
}

}  // namespace numsan
