#include "host/report/rank_error.h"

#include <nlohmann/json.hpp>

#include "host/report/finding_words.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

constexpr const char* kSchema = "numsan.rank-error/1";
constexpr const char* kJobSchema = "numsan.job/1";

std::string place_of(const Json& document) {
    const Json& location = at(document, "location");
    const std::string place = shown_place(location, fields::text(document, "cwd"));
    const std::string function = fields::text(location, "function");
    return place + (place.empty() || function.empty() ? "" : " in " + function);
}

RankError read(const Json& document) {
    RankError error;
    error.rank = static_cast<int64_t>(fields::number(document, "rank", -1));
    error.step = static_cast<int64_t>(fields::number(document, "step"));
    error.counts_steps = fields::number(document, "steps") > 0;
    error.found_at = fields::text(document, "found_at");
    if (const Json& begun = at(document, "collectives"); begun.is_object()) {
        error.begun.emplace();
        for (const auto& [group, count] : begun.items())
            error.begun->emplace(group, static_cast<int64_t>(fields::integer(count).value_or(0)));
    }
    error.host = fields::text(document, "host");
    error.report = fields::text(document, "report");
    error.code = fields::text(document, "severity") + "[" + fields::text(document, "code") + "]";
    error.title = fields::text(document, "title");
    error.place = place_of(document);
    error.document = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    return error;
}

Json begun_before(const Finding& finding, const RunSummary& run) {
    if (!finding.collectives) return nullptr;
    Json begun = Json::object();
    for (const GroupFacts& group : run.groups) {
        const auto known = finding.collectives->find(group.name);
        begun[group.name] = known == finding.collectives->end() ? 0 : known->second;
    }
    return begun;
}

}  // namespace

bool RankError::is_before(const RankError& other) const {
    if (!begun || !other.begun) return false;
    size_t groups = 0, fewer = 0, more = 0;
    for (const auto& [group, count] : *begun) {
        const auto there = other.begun->find(group);
        if (there == other.begun->end()) continue;
        ++groups;
        fewer += count < there->second ? 1 : 0;
        more += count > there->second ? 1 : 0;
    }
    if (groups == 0 || more > 0) return false;
    return fewer > 0 || (counts_steps && other.counts_steps && step < other.step);
}

RankError rank_error(Finding finding, const RunSummary& run, const std::string& report, const std::string& now) {
    static constexpr std::string_view kAnother = "another ";
    finding.first = false;
    const Json all = finding_document(finding);
    Json document = {
        {"schema", kSchema}, {"rank", run.launch.rank.value_or(-1)},   {"host", run.host}, {"pid", run.pid},
        {"cwd", run.cwd},    {"report", fields::text_or_null(report)}, {"found_at", now},  {"steps", run.steps}};
    for (const char* key : {"fingerprint", "severity", "code", "title", "op", "phase", "step", "module", "location"})
        document[key] = at(all, key);
    std::string title = fields::text(all, "title");
    if (title.starts_with(kAnother)) title.erase(0, kAnother.size());
    document["title"] = title;
    document["collectives"] = begun_before(finding, run);
    return read(document);
}

std::optional<RankError> rank_error_of(const std::string& document) {
    const Json parsed = Json::parse(document, nullptr, false);
    const bool is_whole = fields::text(parsed, "schema") == kSchema && !fields::text(parsed, "code").empty() &&
                          !fields::text(parsed, "title").empty() && fields::number(parsed, "rank", -1) >= 0;
    return is_whole ? std::optional(read(parsed)) : std::nullopt;
}

std::string job_document(const RunSummary& run, const std::vector<RankError>& errors) {
    Json document = {{"schema", kJobSchema},
                     {"job", run.launch.job ? Json(*run.launch.job) : Json(nullptr)},
                     {"launcher", run.launch.launcher ? Json(*run.launch.launcher) : Json(nullptr)},
                     {"world_size", run.launch.world_size.value_or(0)},
                     {"started", run.started},
                     {"first_errors", Json::array()}};
    for (const RankError& error : errors) {
        Json one = Json::parse(error.document, nullptr, false);
        one.erase("schema");
        document["first_errors"].push_back(std::move(one));
    }
    return document_text(document);
}

bool begins_job_document(const std::string& text) {
    return text.substr(0, 64).find(std::string("\"") + kJobSchema + "\"") != std::string::npos;
}

}  // namespace numsan
