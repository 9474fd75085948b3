#include "host/report/report_difference.h"

#include "host/report/json_reader.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using Unordered = nlohmann::json;  // the order of keys says nothing

/// What another run of the same events has of its own.
Unordered comparable(const nlohmann::ordered_json& document) {
    Unordered made = Unordered::parse(document_text(document));
    made.erase("tool");
    made.erase("cost");
    made["run"].erase("ended");
    for (Unordered& finding : made["findings"]) finding.erase("dump");  // a replay has no tensors
    return made;
}

std::string shown(const Unordered* value) {
    constexpr size_t kLongest = 120;
    if (value == nullptr) return "nothing";
    const std::string text = value->dump(-1, ' ', false, Unordered::error_handler_t::replace);
    return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string line_of(const Unordered& change, const Unordered& before) {
    const Unordered::json_pointer at(change["path"].get<std::string>());
    const bool appended = !at.empty() && at.back() == "-";
    const Unordered* was = !appended && before.contains(at) && change["op"] != "add" ? &before.at(at) : nullptr;
    const Unordered* now = change["op"] != "remove" ? &change["value"] : nullptr;
    const std::string place =
        appended ? at.parent_pointer().to_string() + "/" + std::to_string(before.at(at.parent_pointer()).size())
                 : at.to_string();
    return place.substr(1) + ": " + shown(was) + ", now " + shown(now);
}

}  // namespace

std::vector<std::string> report_differences(const std::string& before, const std::string& now) {
    const ReadResult a = parse_report("before", before);
    const ReadResult b = parse_report("now", now);
    if (!a.ok() || !b.ok()) return {a.ok() ? b.error : a.error};
    const Unordered old_one = comparable(a.document);
    const Unordered new_one = comparable(b.document);
    std::vector<std::string> lines;
    for (const Unordered& change : Unordered::diff(old_one, new_one)) lines.push_back(line_of(change, old_one));
    return lines;
}

}  // namespace numsan
