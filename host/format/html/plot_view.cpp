#include "host/format/html/plot_view.h"

#include <cmath>
#include <map>

#include "host/format/html/number_line.h"
#include "host/log/format.h"
#include "host/report/finding_words.h"
#include "host/report/text_layout.h"

namespace numsan::html {
namespace {

using fields::at;
using fields::Json;
using fields::JsonInteger;
using fields::list;
using fields::number;
using fields::real;
using fields::text;

constexpr size_t kMostPoints = 512;
constexpr size_t kMostSeries = 8;
constexpr size_t kMostBars = 80;  ///< more powers of two are taken together

std::string exact_text(double value) { return scientific(value, 9); }

struct Series {
    std::string name;
    const Json& points;
};

/// The type of what the history is of: numsan's own place writes the result.
std::string type_of(const Json& finding) {
    for (const char* side : {"outputs", "inputs"}) {
        for (const Json& tensor : list(finding, side)) return text(tensor, "dtype");
    }
    return "";
}

void put_limits(Data& view, const std::string& dtype) {
    const auto line = NumberLine::of(dtype);
    view.set("limits", line.has_value());
    if (!line) return;
    put(view, "dtype", dtype);
    put(view, "largest", exact_text(line->largest()));
    put(view, "normal", exact_text(line->smallest_normal()));
    put(view, "smallest", exact_text(line->smallest()));
    put(view, "largest_text", value_text(line->largest()));
    put(view, "normal_text", value_text(line->smallest_normal()));
    put(view, "smallest_text", value_text(line->smallest()));
}

List cells_of(const std::vector<Series>& series, const std::map<JsonInteger, std::vector<const Json*>>& steps,
              JsonInteger step) {
    List cells;
    const std::vector<const Json*>& row = steps.at(step);
    for (size_t i = 0; i < series.size(); ++i) {
        Data cell;
        const Json* point = row[i];
        const auto value = point == nullptr ? std::nullopt : real(*point, "absmax");
        put(cell, "value", value ? exact_text(*value) : "");
        put(cell, "shown", value ? value_text(*value) : point == nullptr ? "\u2013" : "not finite");
        cell.set("bad", point != nullptr && !value);
        cells.push_back(cell);
    }
    return cells;
}

}  // namespace

Data history_view(const Json& finding) {
    std::vector<Series> series;
    const Json& forward = at(finding, "forward");
    const std::string own = text(forward, "op").empty() ? text(finding, "op") : text(forward, "op");
    if (!list(finding, "history").empty()) series.push_back({own + " (this finding)", list(finding, "history")});
    for (const Json& link : list(finding, "chain")) {
        if (series.size() == kMostSeries) break;
        const Json& points = list(link, "history");
        if (text(link, "role") != "before" || points.empty()) continue;
        const std::string place = shown_place(at(link, "location"), "");
        series.push_back({text(link, "op") + (place.empty() ? "" : " " + place.substr(place.rfind('/') + 1)), points});
    }
    if (series.empty()) return Data(false);
    std::map<JsonInteger, std::vector<const Json*>> steps;
    for (size_t i = 0; i < series.size(); ++i) {
        size_t taken = 0;
        for (const Json& point : series[i].points) {
            if (++taken > kMostPoints) break;
            std::vector<const Json*>& row = steps[number(point, "step")];
            row.resize(series.size());
            row[i] = &point;
        }
    }
    Data view;
    List names;
    for (const Series& one : series) {
        Data name;
        put(name, "name", one.name);
        names.push_back(name);
    }
    view.set("series", names);
    List rows;
    for (const auto& [step, points] : steps) {
        Data row;
        put(row, "step", digits(step));
        row.set("cells", cells_of(series, steps, step));
        rows.push_back(row);
    }
    view.set("rows", rows);
    put_limits(view, type_of(finding));
    return view;
}

namespace {

Data bar(const std::string& label, JsonInteger count, const char* role) {
    Data made;
    put(made, "label", label);
    put(made, "count", grouped(count));
    put(made, "value", digits(count));
    put(made, "role", role);
    return made;
}

void add_count(List& bars, const Json& tensor, const char* key, const char* label, const char* role) {
    if (const JsonInteger count = number(tensor, key); count > 0) bars.push_back(bar(label, count, role));
}

Data histogram_view(const Json& tensor, const Json& exponents) {
    const Json& counts = list(exponents, "counts");
    const JsonInteger first = number(exponents, "first");
    List bars;
    add_count(bars, tensor, "neg_inf", "-inf", "bad");
    add_count(bars, tensor, "zero", "0", "zero");
    const size_t together = (counts.size() + kMostBars - 1) / kMostBars;
    const auto line = NumberLine::of(text(tensor, "dtype"));
    const double normal = line ? std::log2(line->smallest_normal()) : -1e9;
    for (size_t i = 0; i < counts.size(); i += together) {
        JsonInteger count = 0;
        for (size_t j = i; j < std::min(i + together, counts.size()); ++j)
            count += fields::integer(counts[j]).value_or(0);
        const JsonInteger low = first + static_cast<JsonInteger>(i);
        const bool subnormal = static_cast<double>(low) < normal;
        bars.push_back(bar("2^" + digits(low), count, subnormal ? "subnormal" : "normal"));
    }
    add_count(bars, tensor, "pos_inf", "+inf", "bad");
    add_count(bars, tensor, "nan", "nan", "bad");
    Data view;
    put(view, "name", text(tensor, "name"));
    put(view, "type", type_text(tensor));
    put(view, "together", together > 1 ? std::to_string(together) : "");
    view.set("bars", bars);
    return view;
}

}  // namespace

List histogram_views(const Json& finding) {
    List views;
    for (const char* side : {"inputs", "outputs"}) {
        for (const Json& tensor : list(finding, side)) {
            const Json& exponents = at(tensor, "exponents");
            if (list(exponents, "counts").empty() || list(exponents, "counts").size() > 4096) continue;
            if (views.size() < kMostSeries) views.push_back(histogram_view(tensor, exponents));
        }
    }
    return views;
}

}  // namespace numsan::html
