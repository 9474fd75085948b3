// A page of HTML for people: all findings of the reports, one for each fingerprint, and what was said of the runs.
#include <algorithm>

#include "host/explain/explain.h"
#include "host/format/converters.h"
#include "host/format/html/finding_view.h"
#include "host/format/html/time_line_view.h"
#include "host/format/known_findings.h"
#include "host/log/format.h"
#include "host/report/json_reader.h"
#include "host/report/text.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::JsonInteger;
using fields::list;
using fields::number;
using fields::text;
using html::Data;
using html::List;
using html::put;

constexpr size_t kMostWhole = 100;    ///< findings with all that is known of them
constexpr size_t kMostLines = 2000;   ///< of the others: in a table
constexpr size_t kMostReports = 300;  ///< rows; those with findings come first
constexpr size_t kMostSpots = 40;
constexpr size_t kMostSkips = 4096;

/// Findings with what reading many reports leaves out: the few of a page are read once more.
// NOLINTNEXTLINE(bugprone-exception-escape): an empty document throws nothing
class WholeFindings {
  public:
    KnownFinding of(const KnownFinding& known) {
        if (known.path != path_) {
            path_ = known.path;
            report_ = read_report(path_);
        }
        const Json& findings = list(report_.document, "findings");
        KnownFinding whole = known;
        const size_t at_place = known.place.second;
        if (at_place < findings.size() &&
            text(findings[at_place], "fingerprint") == text(known.document, "fingerprint")) {
            whole.document = findings[at_place];
        }
        return whole;
    }

  private:
    std::string path_;
    ReadResult report_;
};

/// What the page says of one report.
struct ReportFacts {
    std::string path;
    std::string program;
    std::string rank;
    std::string host;
    std::string started;
    std::string verdict;
    std::string status;
    std::string summary;  ///< the last lines of its text
    size_t errors = 0;
    size_t findings = 0;
    JsonInteger steps = 0;
};

/// A list of rows of two texts, one a member of `pairs`.
List list_of(const std::map<std::string, std::string>& pairs, const char* key, const char* value) {
    List rows;
    for (const auto& [first, second] : pairs) {
        Data row;
        put(row, key, first);
        put(row, value, second);
        rows.push_back(row);
    }
    return rows;
}

class HtmlConverter : public Converter {
  public:
    void add(const SourceReport& report) override {
        known_.add(report);
        const Json& run = at(report.document, "run");
        ReportFacts facts;
        facts.path = report.path;
        facts.program = program_of(run);
        if (const auto rank = fields::integer(at(run, "rank"))) facts.rank = digits(*rank);
        facts.host = text(run, "host");
        facts.started = text(run, "started");
        facts.verdict = text(report.document, "verdict");
        if (const auto status = fields::integer(at(run, "exit_status"))) facts.status = digits(*status);
        facts.steps = number(run, "steps");
        for (const Json& finding : list(report.document, "findings")) {
            ++facts.findings;
            facts.errors += text(finding, "severity") == "error" ? 1 : 0;
        }
        const Json& coverage = at(report.document, "coverage");
        ops_ += number(coverage, "ops");
        scanned_ += number(coverage, "scanned");
        for (const Json& spot : list(coverage, "blind_spots")) {
            if (spot.is_string() && spots_.size() < kMostSpots)
                spots_.insert(fields::clean(spot.get_ref<const std::string&>()));
        }
        for (const Json& step : list(at(at(report.document, "noted"), "scaler_skips"), "steps")) {
            if (const auto at_step = fields::integer(step); at_step && skipped_.size() < kMostSkips)
                skipped_.insert(*at_step);
        }
        if (report.number < kMostReports) facts.summary = render_summary(report.document, TextStyle{}, report.path);
        facts_.emplace(report.number, std::move(facts));
    }

    void absorb(ReportSink& other) override {
        auto& from = dynamic_cast<HtmlConverter&>(other);
        known_.absorb(from.known_);
        facts_.merge(from.facts_);
        ops_ += from.ops_;
        scanned_ += from.scanned_;
        spots_.merge(from.spots_);
        skipped_.merge(from.skipped_);
    }

    std::string document() override {
        const std::vector<const KnownFinding*> findings = known_.findings();
        Data page;
        JsonInteger steps = 0;
        for (const auto& [order, facts] : facts_) steps = std::max(steps, facts.steps);
        put_head(page, findings, steps);
        page.set("time_line", html::time_line_view(findings, skipped_, steps));
        put_findings(page, findings);
        put_reports(page);
        List spots;
        for (const std::string& spot : spots_) {
            Data item;
            put(item, "spot", spot);
            spots.push_back(item);
        }
        page.set("spots", spots);
        page.set("any_spots", !spots.empty());
        return html::page(html::Body::Report, page);
    }

  private:
    void put_head(Data& page, const std::vector<const KnownFinding*>& findings, JsonInteger steps) const {
        std::set<std::string> programs;
        std::string started;
        std::string framework;
        for (const auto& [order, facts] : facts_) {
            programs.insert(facts.program);
            if (started.empty() || (!facts.started.empty() && facts.started < started)) started = facts.started;
        }
        for (const auto& [order, run] : known_.runs()) {
            const Json& used = at(run.run, "framework");
            if (framework.empty()) framework = text(used, "name") + " " + text(used, "version");
        }
        const auto counts = [](size_t count, const char* one, const char* many) {
            return counted(static_cast<int64_t>(count), one, many);
        };
        std::string program = programs.empty() ? "" : *programs.begin();
        if (programs.size() > 1) program += " and " + counts(programs.size() - 1, "other program", "other programs");
        const size_t incomplete = known_.incomplete_runs();
        const std::string what = findings.empty() ? "no finding" : counts(findings.size(), "finding", "findings");
        put(page, "title", what + " in " + program + " - numsan");
        put(page, "program", program);
        put(page, "heading",
            what + (facts_.size() > 1 ? " in " + counts(facts_.size(), "report", "reports") : std::string()));
        put(page, "incomplete",
            incomplete == 0 ? ""
            : facts_.size() == 1
                ? "the run is incomplete: silence does not mean health here"
                : counts(incomplete, "report is", "reports are") + " incomplete: silence does not mean health there");
        page.set("clean", findings.empty() && incomplete == 0);
        put(page, "started", started);
        put(page, "steps", grouped(steps));
        put(page, "scanned", grouped(scanned_) + " of " + grouped(ops_));
        put(page, "framework", framework == " " ? "" : framework);
        for (const char* severity : {"error", "warning", "info"}) {
            const auto count = std::count_if(findings.begin(), findings.end(), [&](const KnownFinding* known) {
                return html::severity_class(known->severity) == severity;
            });
            put(page, std::string(severity) + "s", std::to_string(count));
        }
    }

    static void put_findings(Data& page, const std::vector<const KnownFinding*>& findings) {
        List whole;
        List lines;
        std::map<std::string, std::string> codes;
        std::map<std::string, std::string> categories;
        WholeFindings read_again;
        for (size_t i = 0; i < findings.size(); ++i) {
            const Json& finding = findings[i]->document;
            if (i < kMostWhole) {
                whole.push_back(html::finding_view(read_again.of(*findings[i]), i + 1));
                const std::string code = text(finding, "code");
                codes.emplace(code, explain_word(code).text);
                const Json& category = at(finding, "category");
                categories.emplace(text(category, "id"), text(category, "name"));
            } else if (i < kMostWhole + kMostLines) {
                Data line;
                put(line, "severity", findings[i]->severity);
                put(line, "mark", html::severity_mark(findings[i]->severity));
                put(line, "class", html::severity_class(findings[i]->severity));
                put(line, "code", text(finding, "code"));
                put(line, "title_html", html::words_html(title_of_any_run(finding)));
                put(line, "place", shown_place(at(finding, "location"), findings[i]->cwd));
                put(line, "step", grouped(findings[i]->first_step));
                lines.push_back(line);
            }
        }
        const size_t shown = whole.size() + lines.size();
        page.set("findings", whole);
        page.set("any_findings", !whole.empty());
        page.set("several", whole.size() > 1);
        page.set("lines", lines);
        page.set("any_lines", !lines.empty());
        put(page, "left_out", shown < findings.size() ? std::to_string(findings.size() - shown) : "");
        page.set("codes", list_of(codes, "code", "text"));
        page.set("categories", list_of(categories, "id", "name"));
    }

    void put_reports(Data& page) const {
        std::vector<const ReportFacts*> order;
        for (const auto& [key, facts] : facts_) order.push_back(&facts);
        // Few keep the order of their files; of many those are shown that have something to say.
        const auto rank = [](const ReportFacts* one) {
            return one->errors > 0 ? 0 : one->findings > 0 ? 1 : one->verdict == "incomplete" ? 2 : 3;
        };
        if (order.size() > kMostReports) {
            std::stable_sort(order.begin(), order.end(),
                             [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
        }
        List rows;
        for (const ReportFacts* facts : order) {
            if (rows.size() == kMostReports) break;
            Data row;
            put(row, "path", facts->path);
            put(row, "program", facts->program);
            put(row, "rank", facts->rank.empty() ? "\u2013" : facts->rank);
            put(row, "host", facts->host);
            put(row, "started", facts->started);
            put(row, "verdict", facts->verdict);
            put(row, "status", facts->status.empty() ? "\u2013" : facts->status);
            put(row, "steps", grouped(facts->steps));
            put(row, "findings", std::to_string(facts->findings));
            put(row, "summary", facts->summary);
            rows.push_back(row);
        }
        put(page, "reports_left", order.size() > rows.size() ? std::to_string(order.size() - rows.size()) : "");
        page.set("reports", rows);
        page.set("one_report", rows.size() == 1);
        put(page, "summary", order.size() == 1 ? order[0]->summary : "");
    }

    KnownFindings known_;
    std::map<size_t, ReportFacts> facts_;
    std::set<std::string> spots_;
    html::SkippedSteps skipped_;
    JsonInteger ops_ = 0;
    JsonInteger scanned_ = 0;
};

}  // namespace

std::unique_ptr<Converter> html_converter() { return std::make_unique<HtmlConverter>(); }

}  // namespace numsan
