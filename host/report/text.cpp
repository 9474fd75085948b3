// A finding as text, from its document.
#include "host/report/text.h"

#include <algorithm>

#include "host/report/finding_words.h"
#include "host/report/json_writer.h"
#include "host/report/text_layout.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::JsonInteger;
using fields::list;
using fields::number;

constexpr size_t kModuleColumn = 66;
/// Cells are padded to the widest of their column, but not beyond a line of usual width: blanks would outgrow the
/// report itself where one name of many is long. Nothing is cut; a longer cell pushes the rest of its own row.
constexpr size_t kWidestColumn = 120;

std::string string_at(const Json& object, const char* key) { return fields::text(object, key); }

/// Rows under one label, aligned as columns.
class TensorRows {
  public:
    explicit TensorRows(size_t name_width) : widths_{std::min(name_width, kWidestColumn)} {}

    void add(std::vector<std::string> cells) {
        widths_.resize(std::max(widths_.size(), cells.size()));
        for (size_t i = 0; i < cells.size(); ++i) {
            widths_[i] = std::max(widths_[i], std::min(columns(cells[i]), kWidestColumn));
        }
        rows_.push_back(std::move(cells));
    }

    std::string print(const std::string& margin, const std::string& label, const TextStyle& style) const {
        std::string out;
        for (const auto& cells : rows_) {
            std::string line;
            for (size_t i = 0; i < cells.size(); ++i) {
                const bool last = i + 1 == cells.size();
                line += last ? cells[i] : padded(cells[i], widths_[i]);
                if (!last) line += i == 0 ? " " : i == 1 ? "  " : "        ";
            }
            if (out.empty()) {
                TextStyle unwrapped = style;
                unwrapped.width = 0;
                out += row(margin, label, line, unwrapped);
            } else {
                out.append(margin).append(13, ' ').append(line).append("\n");
            }
        }
        return out;
    }

  private:
    std::vector<std::vector<std::string>> rows_;
    std::vector<size_t> widths_;
};

std::string tensor_rows(const Json& finding, const std::string& margin, const TextStyle& style) {
    size_t name_width = 0;
    for (const char* group : {"outputs", "inputs"}) {
        for (const Json& tensor : list(finding, group)) {
            name_width = std::max(name_width, columns(string_at(tensor, "name")));
        }
    }
    TensorRows outputs(name_width);
    for (const Json& tensor : list(finding, "outputs")) {
        const bool near_overflow = string_at(finding, "kind") == "overflow" && !any_bad(tensor) && !gone(tensor);
        outputs.add(
            {string_at(tensor, "name"), type_text(tensor), near_overflow ? range_text(tensor) : seen_text(tensor)});
    }
    TensorRows inputs(name_width);
    for (const Json& tensor : list(finding, "inputs")) {
        if (gone(tensor)) {
            inputs.add({string_at(tensor, "name"), type_text(tensor), state_text(tensor)});
        } else {
            inputs.add({string_at(tensor, "name"), type_text(tensor), range_text(tensor), state_text(tensor)});
        }
    }
    return outputs.print(margin, "seen:", style) + inputs.print(margin, "inputs:", style);
}

std::string evidence_text(const Json& finding) {
    std::string out;
    for (const Json& fact : list(finding, "evidence")) {
        if (fact.is_string()) out += (out.empty() ? "" : "; ") + fields::clean(fact.get<std::string>());
    }
    return out;
}

std::string snippet(const Json& place, const std::string& margin, const TextStyle& style) {
    const std::string bar = inked("|", Ink::Frame, style);
    const std::string code = string_at(place, "code");
    if (code.empty()) return margin + " " + bar + "\n";
    const std::string line = padded(digits(number(place, "line")), margin.size());
    return margin + " " + bar + "\n" + inked(line, Ink::Frame, style) + " " + bar + "     " + code + "\n" + margin +
           " " + bar + "\n";
}

std::string stack_note(const Json& finding, const TextStyle& style) {
    constexpr size_t kFrames = 5;
    std::string out;
    size_t shown = 0;
    for (const Json& frame : list(finding, "stack")) {
        if (string_at(frame, "kind") == kRangeFrame) continue;  // they have a row
        if (shown++ == kFrames) break;
        out += inked("note", Ink::Strong, style) + ": in " + string_at(frame, "function");
        if (!string_at(frame, "file").empty()) out += " at " + shown_place(frame, style.cwd);
        out += "\n";
    }
    return out;
}

std::string place_note(const char* what, const Json& place, const TextStyle& style) {
    if (!place.is_object()) return "";
    const std::string code = string_at(place, "code");
    return inked("note", Ink::Strong, style) + ": " + what + " " + shown_place(place, style.cwd) +
           (code.empty() ? "" : " `" + code + "`") + "\n";
}

std::string help_line(const std::string& text, const TextStyle& style) {
    return inked("help", Ink::Strong, style) + ": " + text + "\n";
}

std::string checkpoint_help(const Json& finding, const TextStyle& style) {
    const auto first = state_bad_since(finding);
    return first ? render_checkpoint_help(static_cast<int64_t>(*first), style) : "";
}

std::string header(const Json& finding, const std::string& margin, const TextStyle& style) {
    const std::string severity = string_at(finding, "severity");
    const std::string title = quote_operators(string_at(finding, "title"));
    std::string out = inked(severity + "[" + string_at(finding, "code") + "]", severity_ink(severity), style) + ": " +
                      inked(title, Ink::Strong, style) + "\n";
    const Json& place = at(finding, "location");
    std::string where = "no source line is known";
    if (place.is_object()) {
        where = shown_place(place, style.cwd);
        if (!string_at(place, "function").empty()) where += " in " + string_at(place, "function");
    }
    const std::string lead(margin.size(), ' ');
    const std::string module = string_at(finding, "module");
    out += lead + inked("-->", Ink::Frame, style) + " ";
    const size_t used = lead.size() + 4;
    out += module.empty() ? where : padded(where, kModuleColumn - used - 2) + "  module: " + module;
    return out + "\n";
}

/// As wide as the number of the line.
std::string margin_of(const Json& place) {
    const size_t width = place.is_object() ? digits(number(place, "line")).size() : 1;
    return std::string(std::max<size_t>(width, 2), ' ');
}

std::string help_lines(const Json& finding, const TextStyle& style) {
    std::string out;
    for (const Json& help : list(finding, "help")) {
        if (help.is_string()) out += help_line(fields::clean(help.get<std::string>()), style);
    }
    return out;
}

}  // namespace

std::string render_performance(const Json& report, const TextStyle& style) {
    const Json& performance = at(report, "performance");
    const Json& findings = list(performance, "findings");
    if (findings.empty()) return "";
    std::string out = inked("numsan", Ink::Strong, style) + ": what makes the run slow, by " +
                      counted(number(performance, "steps"), "step", "steps") + " that were looked at:\n";
    for (const Json& finding : findings) {
        const Json& place = at(finding, "location");
        const std::string margin = margin_of(place);
        out += header(finding, margin, style) + snippet(place, margin, style) +
               row(margin, "measured:", string_at(finding, "measured"), style) + help_lines(finding, style);
    }
    return out;
}

std::string render_performance(const Report& report, const TextStyle& style) {
    return render_performance(report_document(report), style);
}

std::string render_finding(const Json& finding, const TextStyle& style) {
    const Json& place = at(finding, "location");
    const std::string margin = margin_of(place);
    std::string out = header(finding, margin, style) + snippet(place, margin, style);
    out += tensor_rows(finding, margin, style);
    out += row(margin, "when:", when_text(finding), style);
    if (const std::string inside = inside_text(finding); !inside.empty()) out += row(margin, "inside:", inside, style);
    if (const std::string kernel = kernel_text(finding); !kernel.empty()) out += row(margin, "kernel:", kernel, style);
    if (string_at(finding, "severity") != kStopped) {
        out += row(margin, "escaped:", escape_text(finding, style.cwd) + contamination_text(finding), style);
        if (const std::string from = received_text(finding); !from.empty())
            out += row(margin, "received:", from, style);
        if (const std::string to = sent_text(finding); !to.empty()) out += row(margin, "sent:", to, style);
        out += row(margin, "category:", category_text(finding), style);
    }
    const std::string evidence = evidence_text(finding);
    if (!evidence.empty()) out += row(margin, "because:", evidence, style);
    if (const JsonInteger count = number(finding, "count", 1); count > 1) {
        out += row(margin, "repeated:", grouped(count) + " times", style);
    }
    if (const std::string dump = string_at(finding, "dump"); !dump.empty())
        out += row(margin, "dump:", dump + "; numsan replay " + dump, style);
    const std::string file = string_at(place, "file");
    if (file.starts_with('<') && string_at(place, "code").empty())
        out += row(margin, "source:", file + " lies in no file, and Python keeps no text of it", style);
    if (!place.is_object()) out += stack_note(finding, style);
    out += place_note("called from", at(finding, "user_location"), style);
    out += place_note("backward started from", at(finding, "backward_location"), style);
    out += place_note("last written by", at(finding, "written_location"), style);
    return out + help_lines(finding, style) + checkpoint_help(finding, style);
}

std::string render_checkpoint_help(int64_t since_step, const TextStyle& style) {
    const std::string which = since_step > 0 ? "checkpoints written after step " + grouped(since_step - 1) + " are"
                                             : std::string("checkpoints written by this run are");
    return help_line(which + " not safe to resume from", style);
}

std::string render_finding(const Finding& finding, const TextStyle& style) {
    return render_finding(finding_document(finding), style);
}

std::string render_birth(const Finding& finding, const TextStyle& style) {
    return render_finding(birth_document(finding), style);
}

}  // namespace numsan
