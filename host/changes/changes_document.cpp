#include "host/changes/changes_document.h"

#include <array>

#include "host/format/markdown.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

constexpr size_t kChanges = static_cast<size_t>(Change::Unchanged) + 1;
using Counts = std::array<size_t, kChanges>;

Counts counts_of(const std::vector<ChangedFinding>& changes) {
    Counts counts{};
    for (const ChangedFinding& one : changes) ++counts[static_cast<size_t>(one.change)];
    return counts;
}

std::string counts_text(const Counts& counts) {
    std::string out;
    for (size_t i = 0; i < kChanges; ++i) {
        out += (i == 0 ? "" : ", ") + std::to_string(counts[i]) + " " + to_string(static_cast<Change>(i));
    }
    return out;
}

/// The side that says how it is: the new one where there is one.
const KnownFinding& shown_side(const ChangedFinding& one) { return one.now != nullptr ? *one.now : *one.before; }

std::string code_text(const KnownFinding& finding) {
    return finding.severity + "[" + fields::text(finding.document, "code") + "]";
}

std::string module_text(const KnownFinding& finding) {
    const std::string module = fields::text(finding.document, "module");
    return module.empty() ? "no module" : module;
}

/// What differs between the sides of a pair, a phrase each: "losses.py:31, was losses.py:28".
std::vector<std::string> differences(const ChangedFinding& one) {
    std::vector<std::string> out;
    if (one.before == nullptr || one.now == nullptr) return out;
    const auto add = [&](const std::string& label, const std::string& was, const std::string& is) {
        if (was != is) out.push_back(label + is + ", was " + was);
    };
    add("", code_text(*one.before), code_text(*one.now));
    if (!same_place(*one.before, *one.now)) add("", place_text(*one.before), place_text(*one.now));
    add("in the function ", function_of(*one.before), function_of(*one.now));
    add("in ", module_text(*one.before), module_text(*one.now));
    add("born in step ", digits(one.before->first_step), digits(one.now->first_step));
    return out;
}

/// "step 3, ranks 0-3, in 4 reports".
std::string when_text(const KnownFinding& finding) {
    const std::string ranks = ranks_text(finding.ranks);
    std::string out = "step " + digits(finding.first_step) + (ranks.empty() ? "" : ", " + ranks);
    if (finding.reports > 1) out += ", in " + std::to_string(finding.reports) + " reports";
    return out;
}

/// What the reader has to know of the runs themselves.
std::vector<std::string> remarks_of(const ComparedReports& compared, const Counts& counts) {
    std::vector<std::string> out;
    const auto add = [&](const std::string& path, const KnownFindings& side, size_t reports, const std::string& words) {
        if (reports == 0) return;
        out.push_back(path + ": " + std::to_string(reports) + " of " +
                      counted(static_cast<int64_t>(side.runs().size()), "report", "reports") + words);
    };
    add(compared.base_path, compared.base, compared.base.incomplete_runs(),
        " incomplete: what appeared may have been there unseen");
    add(compared.new_path, compared.now, compared.now.incomplete_runs(),
        " incomplete: what vanished may be there unseen");
    const std::string left_out = " with findings that an allow-list left out: ";
    if (counts[static_cast<size_t>(Change::Appeared)] > 0)
        add(compared.base_path, compared.base, compared.base.suppressed_runs(),
            left_out + "what appeared may have been one of them");
    if (counts[static_cast<size_t>(Change::Vanished)] > 0)
        add(compared.new_path, compared.now, compared.now.suppressed_runs(),
            left_out + "what vanished may be one of them");
    return out;
}

std::string text_document(const ComparedReports& compared, const std::vector<ChangedFinding>& changes,
                          const TextStyle& style) {
    std::string out;
    for (const ChangedFinding& one : changes) {
        if (one.change == Change::Unchanged) continue;
        const KnownFinding& finding = shown_side(one);
        const bool news = one.change == Change::Appeared || one.change == Change::MoreSevere;
        const std::string code = inked(code_text(finding), severity_ink(finding.severity), style);
        out += (news ? inked(to_string(one.change), Ink::Strong, style) : std::string(to_string(one.change))) + ": " +
               code + ": " + title_of_any_run(finding.document) + "\n";
        const std::string module = fields::text(finding.document, "module");
        out += "  --> " + place_text(finding) + (module.empty() ? "" : "  module: " + module) + "\n";
        const std::string line = fields::text(at(finding.document, "location"), "code");
        if (!line.empty()) out += "      " + line + "\n";
        out += "      " + when_text(finding) + "\n";
        for (const std::string& words : differences(one)) out += "   = " + words + "\n";
        out += "\n";
    }
    const std::string prefix = inked("numsan", Ink::Strong, style) + ": ";
    const Counts counts = counts_of(changes);
    for (const std::string& remark : remarks_of(compared, counts)) out += prefix + remark + "\n";
    return out + prefix + counts_text(counts) + "\n";
}

Json side_document(const KnownFinding* finding) {
    if (finding == nullptr) return nullptr;
    const Json& document = finding->document;
    Json out = Json::object();
    out["fingerprint"] = at(document, "fingerprint");
    out["code"] = at(document, "code");
    out["severity"] = finding->severity;
    out["title"] = title_of_any_run(document);
    out["op"] = at(document, "op");
    out["phase"] = at(document, "phase");
    out["module"] = at(document, "module");
    out["location"] = at(document, "location");
    out["step"] = static_cast<int64_t>(finding->first_step);
    out["reports"] = finding->reports;
    out["ranks"] = finding->ranks;
    out["report"] = finding->path;
    return out;
}

std::string json_document(const ComparedReports& compared, const std::vector<ChangedFinding>& changes) {
    const Counts counts = counts_of(changes);
    Json out = {{"schema", "numsan.diff/1"}};
    const auto side = [](const std::string& path, const KnownFindings& known) {
        return Json{{"path", path},
                    {"reports", known.runs().size()},
                    {"incomplete", known.incomplete_runs()},
                    {"suppressed", known.suppressed_runs()}};
    };
    out["base"] = side(compared.base_path, compared.base);
    out["new"] = side(compared.new_path, compared.now);
    out["counts"] = Json::object();
    for (size_t i = 0; i < kChanges; ++i) out["counts"][to_string(static_cast<Change>(i))] = counts[i];
    out["changes"] = Json::array();
    for (const ChangedFinding& one : changes) {
        if (one.change == Change::Unchanged) continue;
        out["changes"].push_back({{"change", to_string(one.change)},
                                  {"differences", differences(one)},
                                  {"before", side_document(one.before)},
                                  {"now", side_document(one.now)}});
    }
    return document_text(out);
}

std::string markdown_document(const ComparedReports& compared, const std::vector<ChangedFinding>& changes) {
    const Counts counts = counts_of(changes);
    std::string out = "### numsan: " + counts_text(counts) + "\n";
    for (const std::string& remark : remarks_of(compared, counts)) out += "\n" + markdown::text(remark) + "\n";
    size_t left = changes.size() - counts[static_cast<size_t>(Change::Unchanged)];
    if (left > 0) out += "\n| change | finding | what | line | differs |\n| --- | --- | --- | --- | --- |\n";
    for (const ChangedFinding& one : changes) {
        if (one.change == Change::Unchanged) continue;
        const KnownFinding& finding = shown_side(one);
        std::string differs;
        for (const std::string& words : differences(one)) {
            differs += (differs.empty() ? "" : "; ") + markdown::text(words);
        }
        const std::string row = std::string("| ") + to_string(one.change) + " | " + markdown::code(code_text(finding)) +
                                " | " + markdown::text(title_of_any_run(finding.document)) + " | " +
                                markdown::code(place_text(finding)) + " | " + differs + " |\n";
        if (out.size() + row.size() > markdown::kMostOfComment) break;
        out += row;
        --left;
    }
    if (left > 0) {
        out += "\nleft out for their length: " +
               counted(static_cast<int64_t>(left), "further finding", "further findings") +
               "\n\n`numsan diff` shows all\n";
    }
    return out;
}

}  // namespace

std::string changes_document(Format format, const ComparedReports& compared, const std::vector<ChangedFinding>& changes,
                             const TextStyle& style) {
    if (format == Format::Json) return json_document(compared, changes);
    if (format == Format::Markdown) return markdown_document(compared, changes);
    return text_document(compared, changes, style);
}

}  // namespace numsan
