// A finding as text, from its document.
#include "host/report/text.h"

#include <algorithm>
#include <cctype>

#include "host/log/format.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"
#include "host/report/text_layout.h"

namespace numsan {
namespace {

using fields::at;
using fields::Integer;
using fields::Json;
using fields::list;
using fields::number;
using fields::real;

constexpr size_t kModuleColumn = 66;
/// Cells are padded to the widest of their column, but not beyond a line of usual width: blanks would outgrow the
/// report itself where one name of many is long. Nothing is cut; a longer cell pushes the rest of its own row.
constexpr size_t kWidestColumn = 120;

std::string string_at(const Json& object, const char* key) { return fields::text(object, key); }

std::string shown_file(const Json& place, const TextStyle& style) {
    if (const Integer cell = number(place, "cell"); cell > 0) return "cell In[" + digits(cell) + "]";
    std::string file = string_at(place, "file");
    if (!style.cwd.empty() && file.starts_with(style.cwd + "/")) return file.substr(style.cwd.size() + 1);
    return file;
}

std::string shown_place(const Json& place, const TextStyle& style) {
    return shown_file(place, style) + ":" + digits(number(place, "line"));
}

std::string lower_first(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    return text;
}

std::string bracketed(const Json& numbers) {
    std::string out = "[";
    for (const Json& value : numbers) {
        if (out.size() > 1) out += ",";
        const auto exact = fields::integer(value);
        out += exact ? digits(*exact) : "?";
    }
    return out + "]";
}

std::string type_text(const Json& tensor) { return string_at(tensor, "dtype") + bracketed(list(tensor, "shape")); }

std::string bad_counts(const Json& tensor) {
    return "nan " + grouped(number(tensor, "nan")) + "  +inf " + grouped(number(tensor, "pos_inf")) + "  -inf " +
           grouped(number(tensor, "neg_inf"));
}

bool any_bad(const Json& tensor) {
    return number(tensor, "nan") > 0 || number(tensor, "pos_inf") > 0 || number(tensor, "neg_inf") > 0;
}

/// The values were not read: they were overwritten first.
bool gone(const Json& tensor) {
    return at(tensor, "exact").is_boolean() && !at(tensor, "exact").get<bool>() && !any_bad(tensor) &&
           !real(tensor, "max");
}

std::string range_text(const Json& tensor) {
    const auto low = real(tensor, "min");
    const auto high = real(tensor, "max");
    if (!low || !high) return number(tensor, "elements") == 0 ? "empty" : "nothing finite";
    return *low == *high ? value_text(*low) : value_text(*low) + " .. " + value_text(*high);
}

std::string state_text(const Json& tensor) {
    if (gone(tensor)) return "overwritten before it could be looked at";
    std::string out = any_bad(tensor) ? bad_counts(tensor) : "";
    auto add = [&](const std::string& text) { out += out.empty() ? text : "  " + text; };
    if (const Integer zeros = number(tensor, "zero"); zeros > 0) add(counted(zeros, "zero", "zeros"));
    if (const Integer tiny = number(tensor, "subnormal"); tiny > 0) add(counted(tiny, "subnormal", "subnormals"));
    if (at(tensor, "remark").is_string()) add(at(tensor, "remark").get<std::string>());
    return !out.empty() ? out : number(tensor, "elements") == 0 ? "no elements" : "healthy";
}

std::string seen_text(const Json& tensor) {
    if (gone(tensor)) return state_text(tensor);
    std::string out = any_bad(tensor) ? bad_counts(tensor) : range_text(tensor) + "  " + state_text(tensor);
    if (at(tensor, "first_bad").is_object()) out += "  first at " + bracketed(list(at(tensor, "first_bad"), "index"));
    return out;
}

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

std::string when_text(const Json& finding) {
    std::string out = "step " + grouped(number(finding, "step")) + ", " + string_at(finding, "phase") + ", op " +
                      grouped(number(finding, "seq")) + " (" + string_at(finding, "op");
    const std::string node = string_at(at(finding, "forward"), "node");
    if (!node.empty()) out += " in " + node;
    out += ")";
    if (at(finding, "rank").is_number_integer()) out += ", rank " + digits(number(finding, "rank"));
    return out;
}

/// Of a value that reached nothing that matters.
std::string fate_text(const Json& last, const TextStyle& style) {
    const std::string fate = string_at(last, "fate");
    if (fate == "unread") return "no operator read it until the run ended";
    const Json& place = at(last, "location");
    const std::string by =
        "`" + string_at(last, "op") + "`" + (place.is_object() ? " at " + shown_place(place, style) : "");
    if (fate == "overwritten") return "overwritten by " + by;
    if (fate == "masked") return "masked away by " + by;
    if (fate == "joined") return by + " joined it with an earlier bad value";
    const std::string read = "last read by " + by;
    if (fate == "finite") return read + ", whose result is finite";
    if (fate == "no_floats") return read + ", whose result is of no floating type";
    return read + ", and by nothing that matters until the run ended";
}

std::string escape_text(const Json& finding, const TextStyle& style) {
    const Json& escape = at(finding, "escape");
    const std::string into = string_at(escape, "into");
    const std::string name = string_at(escape, "name");
    const std::string called = name.empty() ? "" : " " + name;
    if (into == "loss") return "into the loss" + called;
    if (into == "gradient") return "into " + (name.empty() ? "a gradient" : "the gradient of " + name);
    if (into == "parameter") return "into " + (name.empty() ? "a parameter" : "the parameter " + name);
    if (into == "optimizer_state") return "into the optimizer state" + called;
    if (into == "buffer") return "into " + (name.empty() ? "a buffer" : "the buffer " + name);
    if (into == "collective") return "into a collective" + (name.empty() ? "" : ", " + name);
    if (into == "host") return "to the host program" + (name.empty() ? "" : ", read by " + name);
    if (at(escape, "last").is_object()) return "nowhere: " + fate_text(at(escape, "last"), style);
    if (string_at(finding, "kind") == "overflow") return "into the results that are computed from it";
    return "nowhere: nothing used it";
}

const char* plural_of(const std::string& kind) {
    if (kind == "parameter") return "parameters";
    if (kind == "gradient") return "gradients";
    if (kind == "buffer") return "buffers";
    return "optimizer state";
}

std::optional<Integer> since(const Json& finding, const std::string& kind) {
    std::optional<Integer> step;
    for (const Json& item : list(finding, "contaminated")) {
        if (string_at(item, "kind") != kind) continue;
        step = std::min(step.value_or(number(item, "since_step")), number(item, "since_step"));
    }
    return step;
}

std::string contamination_text(const Json& finding) {
    std::string out;
    for (const std::string kind : {"parameter", "optimizer_state", "buffer", "gradient"}) {
        if (kind == "gradient" && string_at(at(finding, "escape"), "into") == "gradient") continue;
        if (const auto step = since(finding, kind)) {
            out += std::string("; ") + plural_of(kind) + (kind == "optimizer_state" ? " is" : " are") +
                   " not finite since step " + grouped(*step);
        }
    }
    return out;
}

std::string category_text(const Json& finding) {
    const Json& best = at(finding, "category");
    const auto confidence = [](const Json& category) {
        return " (" + fixed(real(category, "confidence").value_or(0), 2) + ")";
    };
    std::string out = string_at(best, "id") + " " + lower_first(string_at(best, "name")) + confidence(best);
    const Json& others = list(finding, "alternatives");
    for (size_t i = 0; i < std::min<size_t>(others.size(), 2); ++i) {
        std::string slug = string_at(others[i], "slug");
        std::replace(slug.begin(), slug.end(), '-', ' ');
        out += (i == 0 ? "; next " : ", ") + string_at(others[i], "id") + " " + slug + confidence(others[i]);
    }
    return out;
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
        if (shown++ == kFrames) break;
        out += inked("note", Ink::Strong, style) + ": in " + string_at(frame, "function");
        if (!string_at(frame, "file").empty()) out += " at " + shown_place(frame, style);
        out += "\n";
    }
    return out;
}

std::string place_note(const char* what, const Json& place, const TextStyle& style) {
    if (!place.is_object()) return "";
    const std::string code = string_at(place, "code");
    return inked("note", Ink::Strong, style) + ": " + what + " " + shown_place(place, style) +
           (code.empty() ? "" : " `" + code + "`") + "\n";
}

std::string help_line(const std::string& text, const TextStyle& style) {
    return inked("help", Ink::Strong, style) + ": " + text + "\n";
}

std::string checkpoint_help(const Json& finding, const TextStyle& style) {
    std::optional<Integer> first;
    for (const char* kind : {"parameter", "optimizer_state", "buffer"}) {
        if (const auto step = since(finding, kind)) first = std::min(first.value_or(*step), *step);
    }
    return first ? render_checkpoint_help(*first, style) : "";
}

std::string header(const Json& finding, const std::string& margin, const TextStyle& style) {
    const std::string severity = string_at(finding, "severity");
    const Ink ink = severity == "warning" ? Ink::Warning : severity == "info" ? Ink::Info : Ink::Error;
    const std::string title = quote_operators(string_at(finding, "title"));
    std::string out = inked(severity + "[" + string_at(finding, "code") + "]", ink, style) + ": " +
                      inked(title, Ink::Strong, style) + "\n";
    const Json& place = at(finding, "location");
    std::string where = "no source line is known";
    if (place.is_object()) {
        where = shown_place(place, style);
        if (!string_at(place, "function").empty()) where += " in " + string_at(place, "function");
    }
    const std::string lead(margin.size(), ' ');
    const std::string module = string_at(finding, "module");
    out += lead + inked("-->", Ink::Frame, style) + " ";
    const size_t used = lead.size() + 4;
    out += module.empty() ? where : padded(where, kModuleColumn - used - 2) + "  module: " + module;
    return out + "\n";
}

}  // namespace

std::string render_finding(const Json& finding, const TextStyle& style) {
    const Json& place = at(finding, "location");
    const size_t width = place.is_object() ? digits(number(place, "line")).size() : 1;
    const std::string margin(std::max<size_t>(width, 2), ' ');
    std::string out = header(finding, margin, style) + snippet(place, margin, style);
    out += tensor_rows(finding, margin, style);
    out += row(margin, "when:", when_text(finding), style);
    if (string_at(finding, "severity") != kStopped) {
        out += row(margin, "escaped:", escape_text(finding, style) + contamination_text(finding), style);
        out += row(margin, "category:", category_text(finding), style);
    }
    const std::string evidence = evidence_text(finding);
    if (!evidence.empty()) out += row(margin, "because:", evidence, style);
    if (const Integer count = number(finding, "count", 1); count > 1) {
        out += row(margin, "repeated:", grouped(count) + " times", style);
    }
    const std::string file = string_at(place, "file");
    if (file.starts_with('<') && string_at(place, "code").empty())
        out += row(margin, "source:", file + " lies in no file, and Python keeps no text of it", style);
    if (!place.is_object()) out += stack_note(finding, style);
    out += place_note("called from", at(finding, "user_location"), style);
    out += place_note("backward started from", at(finding, "backward_location"), style);
    for (const Json& help : list(finding, "help")) {
        if (help.is_string()) out += help_line(fields::clean(help.get<std::string>()), style);
    }
    return out + checkpoint_help(finding, style);
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
