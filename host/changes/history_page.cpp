// The page of many nights: which finding was there in which of them, and how its step and its magnitudes moved.
#include "host/changes/history_document.h"
#include "host/format/html/finding_view.h"
#include "host/format/html/page.h"
#include "host/log/format.h"

namespace numsan {
namespace {

using fields::at;
using fields::text;
using html::Data;
using html::List;
using html::put;

constexpr size_t kMostNights = 120;      ///< columns: the last ones
constexpr size_t kMostFindings = 200;    ///< rows
constexpr double kWorthPlotting = 1e-4;  ///< of the largest number: below there is room for years
constexpr size_t kMostSeries = 8;        ///< of a plot

std::string label_of(const Night& night) {
    if (night.started.size() >= 10) return night.started.substr(0, 10);
    return night.path.substr(night.path.rfind('/') + 1);
}

/// What one night has of a finding, in a cell.
Data cell_of(const KnownFinding* finding, const Night& night) {
    Data cell;
    const bool unsure = finding == nullptr && night.known->incomplete_runs() > 0;
    put(cell, "class", finding != nullptr ? html::severity_class(finding->severity) : "none");
    put(cell, "mark", finding != nullptr ? html::severity_mark(finding->severity) : unsure ? "?" : "\u00b7");
    put(cell, "what",
        finding != nullptr ? finding->severity
        : unsure           ? "not seen, the night is incomplete"
                           : "not there");
    put(cell, "step", finding != nullptr ? grouped(finding->first_step) : "");
    return cell;
}

/// A table that is plotted: a row a night, a column a finding.
template <typename Value>
Data table_of(const std::vector<Night>& nights, size_t begin, const std::vector<const FindingHistory*>& shown,
              Value value) {
    Data table;
    List names;
    for (const FindingHistory* history : shown) {
        const KnownFinding& finding = history->latest();
        const std::string place = shown_place(at(finding.document, "location"), finding.cwd);
        Data name;
        put(name, "name",
            text(finding.document, "code") + " " + (place.empty() ? text(finding.document, "op") : place));
        names.push_back(name);
    }
    List rows;
    for (size_t night = begin; night < nights.size(); ++night) {
        List cells;
        for (const FindingHistory* history : shown) {
            const KnownFinding* finding = history->nights[night];
            const std::optional<double> figure = finding == nullptr ? std::nullopt : value(*finding);
            Data cell;
            put(cell, "value", figure ? scientific(*figure, 9) : "");
            put(cell, "shown", figure ? value_text(*figure) : "\u2013");
            cells.push_back(cell);
        }
        Data row;
        put(row, "night", label_of(nights[night]));
        row.set("cells", cells);
        rows.push_back(row);
    }
    table.set("series", names);
    table.set("rows", rows);
    return table;
}

List plots_of(const std::vector<Night>& nights, size_t begin, const std::vector<FindingHistory>& histories) {
    List plots;
    std::vector<const FindingHistory*> steps;
    std::vector<const FindingHistory*> magnitudes;
    for (const FindingHistory& history : histories) {
        if (history.sightings() < 2) continue;
        if (steps.size() < kMostSeries) steps.push_back(&history);
        const auto room = headroom_of(history.latest());
        if (room && room->absmax / room->largest >= kWorthPlotting && magnitudes.size() < kMostSeries)
            magnitudes.push_back(&history);
    }
    if (!magnitudes.empty()) {
        Data plot = table_of(nights, begin, magnitudes, [](const KnownFinding& one) -> std::optional<double> {
            const auto room = headroom_of(one);
            return room ? std::optional(100 * room->absmax / room->largest) : std::nullopt;
        });
        put(plot, "title",
            "The largest magnitude that the operator wrote, in percent of the largest number of its type");
        put(plot, "unit", "percent of the largest number");
        put(plot, "scale", "logarithmic");
        plots.push_back(plot);
    }
    if (!steps.empty()) {
        Data plot = table_of(nights, begin, steps, [](const KnownFinding& one) {
            return std::optional(static_cast<double>(one.first_step));
        });
        put(plot, "title", "The step in which it was born");
        put(plot, "unit", "step");
        put(plot, "scale", "linear");
        plots.push_back(plot);
    }
    return plots;
}

Data row_of(const FindingHistory& history, const std::vector<Night>& nights, size_t begin) {
    const KnownFinding& finding = history.latest();
    Data row;
    const HistoryState state = state_of(history);
    put(row, "state", to_string(state));
    put(row, "state_mark",
        state == HistoryState::Gone      ? "\u2714"
        : state == HistoryState::Present ? "\u25cf"
                                         : "\u2716");
    row.set("gone", state == HistoryState::Gone);
    put(row, "severity", finding.severity);
    put(row, "class", html::severity_class(finding.severity));
    put(row, "mark", html::severity_mark(finding.severity));
    put(row, "code", text(finding.document, "code"));
    put(row, "title_html", html::words_html(title_of_any_run(finding.document)));
    put(row, "place", shown_place(at(finding.document, "location"), finding.cwd));
    put(row, "module", text(finding.document, "module"));
    put(row, "first", label_of(nights[history.first()]));
    put(row, "last", label_of(nights[history.last()]));
    put(row, "sightings", std::to_string(history.sightings()));
    put(row, "headroom", headroom_text(finding));
    List cells;
    for (size_t night = begin; night < nights.size(); ++night)
        cells.push_back(cell_of(history.nights[night], nights[night]));
    row.set("cells", cells);
    return row;
}

}  // namespace

std::string history_page(const std::string& folder, const std::vector<Night>& nights,
                         const std::vector<FindingHistory>& histories) {
    const size_t begin = nights.size() > kMostNights ? nights.size() - kMostNights : 0;
    Data page;
    size_t now = 0;
    size_t news = 0;
    List rows;
    for (const FindingHistory& history : histories) {
        const HistoryState state = state_of(history);
        now += state == HistoryState::Gone ? 0 : 1;
        news += state == HistoryState::Appeared || state == HistoryState::Returned ? 1 : 0;
        if (rows.size() < kMostFindings) rows.push_back(row_of(history, nights, begin));
    }
    const auto count = [](size_t number, const char* one, const char* many) {
        return counted(static_cast<int64_t>(number), one, many);
    };
    const std::string heading =
        count(histories.size(), "finding", "findings") + " in " + count(nights.size(), "night", "nights");
    put(page, "title", heading + " - numsan");
    put(page, "program", folder);
    put(page, "heading", heading);
    put(page, "now", std::to_string(now));
    put(page, "news", std::to_string(news));
    put(page, "gone", std::to_string(histories.size() - now));
    page.set("any_rows", !rows.empty());
    put(page, "rows_left", histories.size() > rows.size() ? std::to_string(histories.size() - rows.size()) : "");
    put(page, "nights_left", begin > 0 ? std::to_string(begin) : "");
    page.set("rows", rows);
    List columns;
    List sources;
    for (size_t night = begin; night < nights.size(); ++night) {
        Data column;
        put(column, "night", label_of(nights[night]));
        columns.push_back(column);
        Data source;
        const size_t incomplete = nights[night].known->incomplete_runs();
        put(source, "night", label_of(nights[night]));
        put(source, "path", nights[night].path);
        put(source, "started", nights[night].started);
        put(source, "reports", std::to_string(nights[night].known->runs().size()));
        put(source, "findings", std::to_string(nights[night].known->findings().size()));
        put(source, "incomplete", incomplete > 0 ? std::to_string(incomplete) : "");
        sources.push_back(source);
    }
    page.set("columns", columns);
    page.set("sources", sources);
    page.set("plots", plots_of(nights, begin, histories));
    return html::page(html::Body::History, page);
}

}  // namespace numsan
