#include "host/format/html/finding_view.h"

#include <cmath>

#include "host/format/html/chain_view.h"
#include "host/format/html/number_line.h"
#include "host/format/html/plot_view.h"
#include "host/log/format.h"
#include "host/report/finding_words.h"
#include "host/report/text.h"

namespace numsan::html {
namespace {

using fields::at;
using fields::Json;
using fields::JsonInteger;
using fields::list;
using fields::number;
using fields::real;
using fields::text;

constexpr size_t kMostRows = 64;  ///< of a list: numsan writes fewer but for stacks and contaminated tensors

/// The values of a tensor on the line of its type.
void put_scale(Data& view, const Json& tensor) {
    const auto line = NumberLine::of(text(tensor, "dtype"));
    const auto low = real(tensor, "absmin");
    const auto high = real(tensor, "absmax");
    if (!line || !low || !high || !(*low > 0) || !(*high >= *low)) return;
    Data scale;
    const double from = line->place(*low);
    const double to = line->place(*high);
    put(scale, "from", percent(from));
    put(scale, "width", percent(to - from));
    put(scale, "normal", percent(line->place(line->smallest_normal())));
    put(scale, "smallest", value_text(line->smallest()));
    put(scale, "largest", value_text(line->largest()));
    put(scale, "low", value_text(*low));
    put(scale, "high", value_text(*high));
    put(scale, "room", value_text(*high > 0 ? line->largest() / *high : 0));
    view.set("scale", scale);
}

Data tensor_view(const Json& tensor, bool output) {
    Data view;
    put(view, "name", text(tensor, "name"));
    put(view, "type", type_text(tensor));
    put(view, "device", text(tensor, "device"));
    put(view, "range", gone(tensor) ? "" : range_text(tensor));
    const std::string state = output ? seen_text(tensor) : state_text(tensor);
    put(view, "state", state);
    view.set("bad", any_bad(tensor) || !text(tensor, "remark").empty());
    view.set("lower_bounds", !gone(tensor) && at(tensor, "exact") == Json(false));
    view.set("scale", false);
    put_scale(view, tensor);
    return view;
}

List tensors_view(const Json& finding, const char* side) {
    List out;
    for (const Json& tensor : list(finding, side)) {
        if (out.size() == kMostRows) break;
        out.push_back(tensor_view(tensor, std::string(side) == "outputs"));
    }
    return out;
}

Data category_view(const Json& category) {
    Data view;
    put(view, "id", text(category, "id"));
    put(view, "name", text(category, "name"));
    const double confidence = std::clamp(real(category, "confidence").value_or(0), 0.0, 1.0);
    put(view, "confidence", fixed(confidence, 2));
    put(view, "width", percent(100 * confidence));
    return view;
}

List strings_view(const Json& strings) {
    List out;
    for (const Json& one : strings) {
        if (!one.is_string() || out.size() == kMostRows) continue;
        Data item;
        put(item, "words_html", words_html(fields::clean(one.get_ref<const std::string&>())));
        out.push_back(item);
    }
    return out;
}

List stack_view(const Json& frames, const std::string& cwd) {
    List out;
    for (const Json& frame : frames) {
        if (out.size() == kMostRows) break;
        Data item;
        put(item, "function", text(frame, "function"));
        put(item, "kind", text(frame, "kind"));
        put(item, "place", text(frame, "file").empty() ? "" : shown_place(frame, cwd));
        out.push_back(item);
    }
    return out;
}

Data place_view(const Json& place, const std::string& cwd) {
    if (!place.is_object()) return Data(false);
    Data view;
    put(view, "place", shown_place(place, cwd));
    put(view, "code", text(place, "code"));
    put(view, "function", text(place, "function"));
    return view;
}

/// A line as it stands in a file.
Data source_line(JsonInteger line, const std::string& code, bool marked) {
    Data view;
    put(view, "line", digits(line));
    put(view, "code", code.empty() ? " " : code);
    view.set("marked", marked);
    return view;
}

/// The line, and those around it where the report has them.
Data source_view(const Json& finding, const std::string& cwd) {
    const Json& place = at(finding, "location");
    if (!place.is_object()) return Data(false);
    const JsonInteger line = number(place, "line");
    const Json& excerpt = at(finding, "excerpt");
    const Json& around = list(excerpt, "lines");
    const JsonInteger first = number(excerpt, "first");
    List lines;
    if (first <= line && line < first + static_cast<JsonInteger>(around.size()) && around.size() <= kMostRows) {
        JsonInteger at_line = first;
        for (const Json& code : around) {
            const std::string words = code.is_string() ? fields::clean(code.get_ref<const std::string&>()) : "";
            lines.push_back(source_line(at_line, words, at_line == line));
            ++at_line;
        }
    } else if (const std::string code = text(place, "code"); !code.empty()) {
        lines.push_back(source_line(line, code, true));
    }
    Data view;
    put(view, "place", shown_place(place, cwd));
    put(view, "function", text(place, "function"));
    view.set("lines", lines);
    view.set("no_lines", lines.empty());
    return view;
}

Data contaminated_view(const Json& finding) {
    const Json& all = list(finding, "contaminated");
    List items;
    for (const Json& one : all) {
        if (items.size() == kMostRows) break;
        Data item;
        put(item, "kind", text(one, "kind") == "optimizer_state" ? "optimizer state" : text(one, "kind"));
        put(item, "name", text(one, "name"));
        put(item, "since", grouped(number(one, "since_step")));
        items.push_back(item);
    }
    if (items.empty()) return Data(false);
    Data view;
    put(view, "count", counted(static_cast<int64_t>(all.size()), "tensor", "tensors"));
    put(view, "left", all.size() > items.size() ? std::to_string(all.size() - items.size()) : "");
    view.set("items", items);
    return view;
}

std::string text_report(const KnownFinding& known) {
    TextStyle style;
    style.cwd = known.cwd;
    return render_finding(known.document, style);
}

}  // namespace

std::string severity_class(const std::string& severity) {
    return severity == "error" || severity == "warning" ? severity : "info";
}

std::string severity_mark(const std::string& severity) {
    return severity == "error" ? "\u2716" : severity == "warning" ? "\u25b2" : "\u25cf";
}

Data finding_view(const KnownFinding& known, size_t position) {
    const Json& finding = known.document;
    Data view;
    put(view, "anchor", "finding-" + std::to_string(position));
    view.set("open", position == 1);
    put(view, "severity", known.severity);
    put(view, "class", severity_class(known.severity));
    put(view, "mark", severity_mark(known.severity));
    put(view, "code", text(finding, "code"));
    put(view, "title_html", words_html(title_of_any_run(finding)));
    put(view, "op", text(finding, "op"));
    put(view, "phase", text(finding, "phase"));
    put(view, "module", text(finding, "module"));
    put(view, "place", shown_place(at(finding, "location"), known.cwd));
    put(view, "step", grouped(known.first_step));
    put(view, "ranks", ranks_text(known.ranks));
    put(view, "reports", known.reports > 1 ? std::to_string(known.reports) + " reports" : "");
    put(view, "report", known.path);
    const JsonInteger count = number(finding, "count", 1);
    put(view, "repeated", count > 1 ? counted(count, "time", "times") : "");
    put(view, "when", when_text(finding));
    put(view, "inside", inside_text(finding));
    put(view, "kernel", kernel_text(finding));
    put(view, "escaped", escape_text(finding, known.cwd) + contamination_text(finding));
    put(view, "category_id", text(at(finding, "category"), "id"));
    view.set("source", source_view(finding, known.cwd));
    view.set("called", place_view(at(finding, "user_location"), known.cwd));
    view.set("backward", place_view(at(finding, "backward_location"), known.cwd));
    view.set("written", place_view(at(finding, "written_location"), known.cwd));
    view.set("chain", chain_view(finding, known.cwd));
    view.set("outputs", tensors_view(finding, "outputs"));
    view.set("inputs", tensors_view(finding, "inputs"));
    view.set("histograms", histogram_views(finding));
    view.set("history", history_view(finding));
    view.set("category", category_view(at(finding, "category")));
    List others;
    for (const Json& one : list(finding, "alternatives")) {
        if (others.size() < kMostRows) others.push_back(category_view(one));
    }
    view.set("alternatives", others);
    view.set("evidence", strings_view(list(finding, "evidence")));
    view.set("help", strings_view(list(finding, "help")));
    const auto unsafe = state_bad_since(finding);
    put(view, "unsafe",
        !unsafe       ? ""
        : *unsafe > 0 ? "checkpoints written after step " + grouped(*unsafe - 1) + " are not safe to resume from"
                      : "checkpoints written by this run are not safe to resume from");
    view.set("contaminated", contaminated_view(finding));
    view.set("stack", stack_view(list(finding, "stack"), known.cwd));
    put(view, "text", text_report(known));
    return view;
}

}  // namespace numsan::html
