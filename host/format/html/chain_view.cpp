#include "host/format/html/chain_view.h"

#include "host/report/finding_words.h"
#include "host/report/text_layout.h"

namespace numsan::html {
namespace {

using fields::at;
using fields::Json;
using fields::list;
using fields::number;
using fields::real;
using fields::text;

constexpr size_t kMostStations = 40;

/// `role` is a class of the style sheet, `label` says the same in a word.
Data station(const char* role, const std::string& label, const std::string& name) {
    Data made;
    put(made, "role", role);
    put(made, "label", label);
    put(made, "name", name);
    for (const char* key : {"place", "code", "note", "values"}) made.set(key, false);
    return made;
}

void put_place(Data& into, const Json& place, const std::string& cwd) {
    if (!place.is_object()) return;
    put(into, "place", shown_place(place, cwd));
    put(into, "code", text(place, "code"));
}

std::string number_text(const Json& finding) {
    return "step " + grouped(number(finding, "step")) + ", op " + grouped(number(finding, "seq"));
}

std::string values_text(const Json& link) {
    const auto high = real(link, "absmax");
    const auto low = real(link, "absmin");
    if (!high) return at(link, "bad") == true ? "not finite" : "";  // integers are not read
    return (low && *low < *high ? "magnitudes " + value_text(*low) + " .. " : "magnitude ") + value_text(*high);
}

Data link_station(const Json& link, const std::string& role, const std::string& cwd) {
    Data made = station(role == "before" ? "before" : "after", role == "before" ? "computed before" : "handed on by",
                        text(link, "op"));
    put_place(made, at(link, "location"), cwd);
    put(made, "values", values_text(link));
    put(made, "note", number_text(link));
    return made;
}

void add_links(List& stations, const Json& finding, const std::string& role, const std::string& cwd) {
    for (const Json& link : list(finding, "chain")) {
        if (text(link, "role") == role && stations.size() < kMostStations)
            stations.push_back(link_station(link, role, cwd));
    }
}

}  // namespace

List chain_view(const Json& finding, const std::string& cwd) {
    List stations;
    add_links(stations, finding, "before", cwd);
    if (const Json& forward = at(finding, "forward"); forward.is_object()) {
        Data made = station("before", "forward operator", text(forward, "op"));
        put_place(made, at(forward, "location"), cwd);
        put(made, "note", text(forward, "node").empty() ? "" : "its derivative is " + text(forward, "node"));
        stations.push_back(made);
    }
    if (const Json& backward = at(finding, "backward_location"); backward.is_object()) {
        Data made = station("before", "backward pass", "backward()");
        put_place(made, backward, cwd);
        stations.push_back(made);
    }
    const std::string kind = text(finding, "kind");
    Data birth = station("birth", "born here", text(finding, "op"));
    if (!at(finding, "forward").is_object()) put_place(birth, at(finding, "location"), cwd);
    put(birth, "note", number_text(finding));
    put(birth, "values", kind == "nan" ? "nan" : kind == "inf" ? "infinity" : kind);
    stations.push_back(birth);
    add_links(stations, finding, "after", cwd);
    const Json& escape = at(finding, "escape");
    Data escaped = station("escape", "escaped", escape_text(finding, cwd));
    put(escaped, "note", escape.is_object() ? number_text(escape) : "");
    stations.push_back(escaped);
    for (const auto& [what, plural] :
         {std::pair("gradient", "gradients"), std::pair("parameter", "parameters"),
          std::pair("optimizer_state", "optimizer state"), std::pair("buffer", "buffers")}) {
        const auto since = bad_since(finding, what);
        if (!since) continue;
        size_t count = 0;
        for (const Json& one : list(finding, "contaminated")) count += text(one, "kind") == what ? 1 : 0;
        Data made = station("state", "not finite since step " + grouped(*since),
                            count == 1 ? "1 of the " + std::string(plural) : std::to_string(count) + " " + plural);
        stations.push_back(made);
    }
    return stations;
}

}  // namespace numsan::html
