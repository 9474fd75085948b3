#include "host/report/finding_words.h"

#include <algorithm>
#include <cctype>

#include "host/finding/finding.h"
#include "host/log/format.h"
#include "host/report/text_layout.h"

namespace numsan {

using fields::at;
using fields::Json;
using fields::JsonInteger;
using fields::list;
using fields::number;
using fields::real;

namespace {

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

}  // namespace

std::string below(const std::string& path, const std::string& folder) {
    return folder.size() > 1 && path.starts_with(folder + "/") ? path.substr(folder.size() + 1) : path;
}

std::string shown_file(const Json& place, const std::string& cwd) {
    if (const JsonInteger cell = number(place, "cell"); cell > 0) return "cell In[" + digits(cell) + "]";
    return below(fields::text(place, "file"), cwd);
}

std::string shown_place(const Json& place, const std::string& cwd) {
    if (!place.is_object()) return "";
    const JsonInteger line = number(place, "line");  // native code without debug information has none
    return shown_file(place, cwd) + (line > 0 ? ":" + digits(line) : "");
}

std::string type_text(const Json& tensor) { return fields::text(tensor, "dtype") + bracketed(list(tensor, "shape")); }

namespace {

std::string bad_counts(const Json& tensor) {
    return "nan " + grouped(number(tensor, "nan")) + "  +inf " + grouped(number(tensor, "pos_inf")) + "  -inf " +
           grouped(number(tensor, "neg_inf"));
}

}  // namespace

bool any_bad(const Json& tensor) {
    return number(tensor, "nan") > 0 || number(tensor, "pos_inf") > 0 || number(tensor, "neg_inf") > 0;
}

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
    if (const JsonInteger zeros = number(tensor, "zero"); zeros > 0) add(counted(zeros, "zero", "zeros"));
    if (const JsonInteger tiny = number(tensor, "subnormal"); tiny > 0) add(counted(tiny, "subnormal", "subnormals"));
    if (at(tensor, "remark").is_string()) add(at(tensor, "remark").get<std::string>());
    return !out.empty() ? out : number(tensor, "elements") == 0 ? "no elements" : "healthy";
}

std::string seen_text(const Json& tensor) {
    if (gone(tensor)) return state_text(tensor);
    std::string out = any_bad(tensor) ? bad_counts(tensor) : range_text(tensor) + "  " + state_text(tensor);
    if (at(tensor, "first_bad").is_object()) out += "  first at " + bracketed(list(at(tensor, "first_bad"), "index"));
    return out;
}

std::string when_text(const Json& finding) {
    std::string out = "step " + grouped(number(finding, "step")) + ", " + fields::text(finding, "phase") + ", op " +
                      grouped(number(finding, "seq")) + " (" + fields::text(finding, "op");
    const std::string node = fields::text(at(finding, "forward"), "node");
    if (!node.empty()) out += " in " + node;
    out += ")";
    if (at(finding, "rank").is_number_integer()) out += ", rank " + digits(number(finding, "rank"));
    return out;
}

namespace {

std::string ranges_of(const Json& stack) {
    std::string out;
    for (const Json& frame : list(stack, "stack")) {  // innermost first
        if (fields::text(frame, "kind") != kRangeFrame) continue;
        const std::string name = fields::text(frame, "function");
        out = out.empty() ? name : name + " > " + out;
    }
    return out;
}

}  // namespace

std::string inside_text(const Json& finding) {
    const std::string here = ranges_of(finding);
    if (!at(finding, "forward").is_object()) return here;
    const std::string forward = ranges_of(at(finding, "forward"));
    if (here.empty() || forward == here) return forward;
    return forward + (forward.empty() ? "" : "; ") + "its backward is inside " + here;
}

namespace {

std::string generated_kernels(const Json& finding) {
    std::string out;
    for (const Json& frame : list(finding, "stack")) {
        if (fields::text(frame, "kind") != kKernelFrame) continue;
        out += (out.empty() ? "" : " or ") + fields::text(frame, "function") + " at " + shown_place(frame, "");
    }
    return out;
}

}  // namespace

std::string kernel_text(const Json& finding) {
    const Json& launches = list(finding, "launches");
    if (launches.empty()) return generated_kernels(finding);
    const Json& last = launches.back();
    const auto extent = [&](const char* what) {
        std::string text;
        for (const Json& size : list(last, what))
            text += (text.empty() ? "" : "x") + digits(fields::integer(size).value_or(0));
        return std::string(what) + " " + text;
    };
    std::string out = fields::text(last, "kernel") + ", ";
    if (const JsonInteger launch = number(last, "number"); launch > 0) out += "launch " + digits(launch) + ", ";
    out += extent("grid") + ", " + extent("block");
    if (const JsonInteger shared = number(last, "shared_bytes"); shared > 0)
        out += ", " + grouped(shared) + " bytes of shared memory";
    out += ", stream " + fields::text(last, "stream") + ", correlation " + digits(number(last, "correlation_id"));
    if (launches.size() > 1) out += "; the last that the operator launched";
    return out;
}

namespace {

/// Of a value that reached nothing that matters.
std::string fate_text(const Json& last, const std::string& cwd) {
    const std::string fate = fields::text(last, "fate");
    if (fate == "unread") return "no operator read it until the run ended";
    const Json& place = at(last, "location");
    const std::string by =
        "`" + fields::text(last, "op") + "`" + (place.is_object() ? " at " + shown_place(place, cwd) : "");
    if (fate == "overwritten") return "overwritten by " + by;
    if (fate == "masked") return "masked away by " + by;
    if (fate == "joined") return by + " joined it with an earlier bad value";
    const std::string read = "last read by " + by;
    if (fate == "finite") return read + ", whose result is finite";
    if (fate == "no_floats") return read + ", whose result is of no floating type";
    return read + ", and by nothing that matters until the run ended";
}

}  // namespace

std::string escape_text(const Json& finding, const std::string& cwd) {
    const Json& escape = at(finding, "escape");
    const std::string into = fields::text(escape, "into");
    const std::string name = fields::text(escape, "name");
    const std::string called = name.empty() ? "" : " " + name;
    if (into == "loss") return "into the loss" + called;
    if (into == "gradient") return "into " + (name.empty() ? "a gradient" : "the gradient of " + name);
    if (into == "parameter") return "into " + (name.empty() ? "a parameter" : "the parameter " + name);
    if (into == "optimizer_state") return "into the optimizer state" + called;
    if (into == "buffer") return "into " + (name.empty() ? "a buffer" : "the buffer " + name);
    if (into == "collective") return "into a collective" + (name.empty() ? "" : ", " + name);
    if (into == "host") return "to the host program" + (name.empty() ? "" : ", read by " + name);
    if (at(escape, "last").is_object()) return "nowhere: " + fate_text(at(escape, "last"), cwd);
    if (fields::text(finding, "kind") == "overflow") return "into the results that are computed from it";
    return "nowhere: nothing used it";
}

namespace {

const char* plural_of(const std::string& kind) {
    if (kind == "parameter") return "parameters";
    if (kind == "gradient") return "gradients";
    if (kind == "buffer") return "buffers";
    return "optimizer state";
}

}  // namespace

std::optional<JsonInteger> bad_since(const Json& finding, const std::string& kind) {
    std::optional<JsonInteger> step;
    for (const Json& item : list(finding, "contaminated")) {
        if (fields::text(item, "kind") != kind) continue;
        step = std::min(step.value_or(number(item, "since_step")), number(item, "since_step"));
    }
    return step;
}

std::optional<JsonInteger> state_bad_since(const Json& finding) {
    std::optional<JsonInteger> first;
    for (const char* kind : {"parameter", "optimizer_state", "buffer"}) {
        if (const auto step = bad_since(finding, kind)) first = std::min(first.value_or(*step), *step);
    }
    return first;
}

std::string contamination_text(const Json& finding) {
    std::string out;
    for (const std::string kind : {"parameter", "optimizer_state", "buffer", "gradient"}) {
        if (kind == "gradient" && fields::text(at(finding, "escape"), "into") == "gradient") continue;
        if (const auto step = bad_since(finding, kind)) {
            out += std::string("; ") + plural_of(kind) + (kind == "optimizer_state" ? " is" : " are") +
                   " not finite since step " + grouped(*step);
        }
    }
    return out;
}

namespace {

/// "`c10d::recv_` 3 with tag 7 of the group mesh_pp". A group is known by what it is for, where that is said.
std::string operation_text(const Json& collective) {
    std::string out = "`" + fields::text(collective, "op") + "`";
    if (const auto number = fields::integer(at(collective, "number"))) out += " " + digits(*number);
    if (const JsonInteger tag = number(collective, "tag"); tag != 0) out += " with tag " + digits(tag);
    const std::string purpose = fields::text(collective, "description");
    return out + " of the group " + (purpose.empty() ? fields::text(collective, "group") : purpose);
}

constexpr const char* kAll = "ranks ";
constexpr const char* kSome = "one or more of ranks ";

/// "rank 3", "ranks 0-2"; of the group where those of the job are not known.
std::string others_text(const Json& collective, const char* key, const char* several) {
    const std::string ranks = fields::text(collective, key);
    if (!ranks.empty()) return ranks.find_first_of(",-") == ranks.npos ? "rank " + ranks : several + ranks;
    if (const auto peer = fields::integer(at(collective, "peer"))) return "rank " + digits(*peer) + " of the group";
    return several == kSome ? "one or more of the other ranks of the group" : "the other ranks of the group";
}

}  // namespace

std::string sent_text(const Json& finding) {
    const Json& sent = list(finding, "sent");
    if (sent.empty()) return "";
    std::string out = "to " + others_text(sent[0], "to", kAll) + " by " + operation_text(sent[0]) + " in step " +
                      grouped(number(sent[0], "step"));
    if (sent.size() > 1) out += ", and by " + counted(sent.size() - 1, "operation", "operations") + " after it";
    return out;
}

std::string received_operation_text(const Json& finding) {
    const Json& received = at(finding, "received");
    return received.is_object() ? "by " + operation_text(received) : "";
}

std::string received_text(const Json& finding) {
    const std::string operation = received_operation_text(finding);
    if (operation.empty()) return "";
    return "from " + others_text(at(finding, "received"), "from", kSome) + " " + operation;
}

std::string category_text(const Json& finding) {
    const Json& best = at(finding, "category");
    const auto confidence = [](const Json& category) {
        return " (" + fixed(real(category, "confidence").value_or(0), 2) + ")";
    };
    std::string out = fields::text(best, "id") + " " + lower_first(fields::text(best, "name")) + confidence(best);
    const Json& others = list(finding, "alternatives");
    for (size_t i = 0; i < std::min<size_t>(others.size(), 2); ++i) {
        std::string slug = fields::text(others[i], "slug");
        std::replace(slug.begin(), slug.end(), '-', ' ');
        out += (i == 0 ? "; next " : ", ") + fields::text(others[i], "id") + " " + slug + confidence(others[i]);
    }
    return out;
}

}  // namespace numsan
