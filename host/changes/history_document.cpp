#include "host/changes/history_document.h"

#include "host/changes/finding_changes.h"
#include "host/log/format.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

constexpr size_t kMostShown = 12;  ///< nights of which a row of the text has a figure: the last ones

/// "2026-11-20 09:00" of a time, else the path.
std::string name_of(const Night& night) {
    if (night.started.size() < 16) return night.path;
    return night.started.substr(0, 10) + " " + night.started.substr(11, 5);
}

/// A figure of each night, "-" where the finding is not there; nothing where the same is said of all.
template <typename Figure>
std::string figures_text(const FindingHistory& history, const std::string& label, Figure figure) {
    std::vector<std::string> words;
    for (const KnownFinding* one : history.nights) words.push_back(one == nullptr ? "-" : figure(*one));
    const size_t begin = words.size() > kMostShown ? words.size() - kMostShown : 0;
    std::string out;
    for (size_t i = begin; i < words.size(); ++i) out += (i == begin ? "" : "  ") + words[i];
    return "   = " + label + ": " + (begin > 0 ? "... " : "") + out + "\n";
}

std::string since_text(const FindingHistory& history, const std::vector<Night>& nights) {
    std::string out = "first seen " + name_of(nights[history.first()]) + ", last seen " +
                      name_of(nights[history.last()]) + ", in " + std::to_string(history.sightings()) + " of " +
                      counted(static_cast<int64_t>(nights.size()), "night", "nights");
    if (state_of(history) == HistoryState::Gone) out += "; gone since " + name_of(nights[history.last() + 1]);
    return out;
}

/// "91.8 %"; empty where there is so much room that nobody counts it.
std::string percent_text(const Headroom& room) {
    constexpr double kWorthSaying = 1e-4;
    const double share = room.absmax / room.largest;
    return share < kWorthSaying ? "" : fixed(100 * share, 1) + " %";
}

std::string share_text(const KnownFinding& finding) {
    const auto room = headroom_of(finding);
    if (!room) return "?";
    const std::string percent = percent_text(*room);
    return value_text(room->absmax) + (percent.empty() ? "" : " (" + percent + ")");
}

std::string text_document(const std::vector<Night>& nights, const std::vector<FindingHistory>& histories,
                          const TextStyle& style) {
    std::string out;
    for (const FindingHistory& history : histories) {
        const KnownFinding& finding = history.latest();
        const HistoryState state = state_of(history);
        const bool news = state == HistoryState::Appeared || state == HistoryState::Returned;
        out += (news ? inked(to_string(state), Ink::Strong, style) : std::string(to_string(state))) + ": " +
               inked(finding.severity + "[" + fields::text(finding.document, "code") + "]",
                     severity_ink(finding.severity), style) +
               ": " + title_of_any_run(finding.document) + "\n";
        const std::string module = fields::text(finding.document, "module");
        out += "  --> " + place_text(finding) + (module.empty() ? "" : "  module: " + module) + "\n";
        out += "      " + since_text(history, nights) + "\n";
        out += figures_text(history, "step", [](const KnownFinding& one) { return grouped(one.first_step); });
        if (headroom_of(finding))
            out += figures_text(history, "largest value written (share of the type's largest)", share_text);
        out += "\n";
    }
    const std::string prefix = inked("numsan", Ink::Strong, style) + ": ";
    for (const Night& night : nights) {
        const size_t incomplete = night.known->incomplete_runs();
        if (incomplete == 0) continue;
        out += prefix + name_of(night) + ": " + std::to_string(incomplete) + " of " +
               counted(static_cast<int64_t>(night.known->runs().size()), "report", "reports") +
               " incomplete: what is not seen there may have been there\n";
    }
    size_t now = 0;
    for (const FindingHistory& history : histories) now += state_of(history) == HistoryState::Gone ? 0 : 1;
    return out + prefix + counted(static_cast<int64_t>(histories.size()), "finding", "findings") + " in " +
           counted(static_cast<int64_t>(nights.size()), "night", "nights") + ", " + std::to_string(now) +
           " of them in the last one\n";
}

Json sighting_document(const KnownFinding& finding, size_t night) {
    Json out = {{"night", night},
                {"severity", finding.severity},
                {"step", static_cast<int64_t>(finding.first_step)},
                {"reports", finding.reports},
                {"place", place_text(finding)}};
    if (const auto room = headroom_of(finding)) {
        out["absmax"] = room->absmax;
        out["dtype"] = room->dtype;
        out["share_of_largest"] = room->absmax / room->largest;
    }
    return out;
}

std::string json_document(const std::string& folder, const std::vector<Night>& nights,
                          const std::vector<FindingHistory>& histories) {
    Json out = {{"schema", "numsan.history/1"}, {"folder", folder}};
    out["nights"] = Json::array();
    for (const Night& night : nights) {
        out["nights"].push_back({{"path", night.path},
                                 {"started", night.started.empty() ? Json(nullptr) : Json(night.started)},
                                 {"reports", night.known->runs().size()},
                                 {"incomplete", night.known->incomplete_runs()},
                                 {"findings", night.known->findings().size()}});
    }
    out["findings"] = Json::array();
    for (const FindingHistory& history : histories) {
        const KnownFinding& finding = history.latest();
        const Json& document = finding.document;
        Json one = {{"state", to_string(state_of(history))}, {"first_night", history.first()},
                    {"last_night", history.last()},          {"fingerprint", at(document, "fingerprint")},
                    {"code", at(document, "code")},          {"severity", finding.severity},
                    {"title", title_of_any_run(document)},   {"op", at(document, "op")},
                    {"phase", at(document, "phase")},        {"module", at(document, "module")},
                    {"location", at(document, "location")}};
        one["nights"] = Json::array();
        for (size_t night = 0; night < history.nights.size(); ++night) {
            if (history.nights[night] != nullptr)
                one["nights"].push_back(sighting_document(*history.nights[night], night));
        }
        out["findings"].push_back(std::move(one));
    }
    return document_text(out);
}

}  // namespace

std::string headroom_text(const KnownFinding& finding) {
    const auto room = headroom_of(finding);
    if (!room) return "";
    const std::string percent = percent_text(*room);
    return "magnitude " + value_text(room->absmax) +
           (percent.empty() ? "" : ", " + percent + " of the largest " + room->dtype);
}

std::string history_document(Format format, const std::string& folder, const std::vector<Night>& nights,
                             const std::vector<FindingHistory>& histories, const TextStyle& style) {
    if (format == Format::Json) return json_document(folder, nights, histories);
    if (format == Format::Html) return history_page(folder, nights, histories);
    return text_document(nights, histories, style);
}

}  // namespace numsan
