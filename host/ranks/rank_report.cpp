#include "host/ranks/rank_report.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "host/format/known_findings.h"
#include "host/report/json_fields.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::list;

/// None for what is no integer of 64 bits.
std::optional<int64_t> whole(const Json& value) {
    const std::optional<fields::JsonInteger> read = fields::integer(value);
    if (!read || *read > std::numeric_limits<int64_t>::max()) return std::nullopt;
    return static_cast<int64_t>(*read);
}

int64_t whole_or(const Json& object, const char* key, int64_t otherwise) {
    return whole(at(object, key)).value_or(otherwise);
}

/// None for what is no rank.
std::optional<int64_t> rank_at(const Json& object, const char* key) {
    constexpr int64_t kMost = 1 << 30;
    const std::optional<int64_t> read = whole(at(object, key));
    return read && *read >= 0 && *read < kMost ? read : std::nullopt;
}

RankGroup group_of(const Json& document) {
    RankGroup group;
    group.name = fields::text(document, "name");
    group.ranks = fields::text(document, "ranks");
    group.rank = rank_at(document, "rank").value_or(-1);
    group.size = rank_at(document, "size").value_or(0);
    return group;
}

uint32_t place_of(const std::vector<RankGroup>& groups, const std::string& name) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const RankGroup& group) { return group.name == name; });
    return found == groups.end() ? RankOperation::kNoGroup : static_cast<uint32_t>(found - groups.begin());
}

RankOperation operation_of(const Json& document, const std::vector<RankGroup>& groups) {
    RankOperation operation;
    operation.group = place_of(groups, fields::text(document, "group"));
    operation.peer = static_cast<int32_t>(rank_at(document, "peer").value_or(-1));
    operation.number = static_cast<uint64_t>(std::max<int64_t>(whole_or(document, "number", 0), 0));
    operation.tag = whole_or(document, "tag", -1);
    return operation;
}

RankFinding finding_of(const Json& document, size_t position, const std::vector<RankGroup>& groups) {
    RankFinding finding;
    finding.key = finding_key(document);
    finding.position = position;
    finding.severity = severity_rank(fields::text(document, "severity"));
    finding.step = whole_or(document, "step", 0);
    finding.seq = whole_or(document, "seq", 0);
    const auto begun = document.find("collectives");
    if (begun == document.end() || begun->is_object()) finding.begun.emplace();
    if (finding.begun && begun != document.end()) {
        for (const auto& [name, count] : begun->items()) {
            const uint32_t place = place_of(groups, fields::clean(name));
            const int64_t number = whole(count).value_or(-1);
            if (place != RankOperation::kNoGroup && number >= 0)
                finding.begun->emplace_back(place, static_cast<uint64_t>(number));
        }
    }
    if (at(document, "received").is_object()) {
        finding.received = operation_of(at(document, "received"), groups);
        // An overflow of the sum is nobody's but the operation's.
        finding.is_foreign = fields::text(document, "mechanism") == "DATA";
    }
    for (const Json& sent : list(document, "sent")) finding.sent.push_back(operation_of(sent, groups));
    return finding;
}

}  // namespace

const RankGroup* RankReport::group_called(const std::string& name) const {
    const uint32_t place = place_of(groups, name);
    return place == RankOperation::kNoGroup ? nullptr : &groups[place];
}

RankReport rank_report(const SourceReport& report) {
    const Json& run = at(report.document, "run");
    RankReport made;
    made.number = report.number;
    made.path = report.path;
    made.id = fields::text(run, "id");
    made.host = fields::text(run, "host");
    made.program = program_of(run);
    made.launcher = fields::text(run, "launcher");
    made.job = fields::text(run, "job");
    made.started = fields::text(run, "started");
    made.ended = fields::text(run, "ended");
    made.report_when = fields::text(at(run, "options"), "report_when");
    made.pid = whole_or(run, "pid", 0);
    made.rank = rank_at(run, "rank");
    made.world_size = rank_at(run, "world_size");
    made.exit_status = whole(at(run, "exit_status"));
    made.incomplete = fields::text(report.document, "verdict") == "incomplete";
    for (const Json& group : list(run, "groups")) made.groups.push_back(group_of(group));
    size_t position = 0;
    for (const Json& finding : list(report.document, "findings")) {
        if (finding.is_object()) made.findings.push_back(finding_of(finding, position, made.groups));
        ++position;
    }
    return made;
}

}  // namespace numsan
