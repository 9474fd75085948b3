#include "host/report/report_difference.h"

#include "host/report/json_reader.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using Json = nlohmann::json;  // the order of keys says nothing

/// What another run of the same events has of its own.
Json comparable(const nlohmann::ordered_json& document) {
    Json made = Json::parse(document_text(document));
    made.erase("tool");
    made.erase("cost");
    made["run"].erase("ended");
    return made;
}

std::string shown(const Json& document, const Json::json_pointer& at) {
    constexpr size_t kLongest = 120;
    if (!document.contains(at)) return "nothing";
    const std::string text = document.at(at).dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

}  // namespace

std::vector<std::string> report_differences(const std::string& before, const std::string& now) {
    const ReadResult a = parse_report("before", before);
    const ReadResult b = parse_report("now", now);
    if (!a.ok() || !b.ok()) return {a.ok() ? b.error : a.error};
    const Json old_one = comparable(a.document);
    const Json new_one = comparable(b.document);
    std::vector<std::string> lines;
    for (const Json& change : Json::diff(old_one, new_one)) {
        const auto path = change["path"].get<std::string>();
        const Json::json_pointer at(path);
        lines.push_back(path.substr(1) + ": " + shown(old_one, at) + ", now " + shown(new_one, at));
    }
    return lines;
}

}  // namespace numsan
