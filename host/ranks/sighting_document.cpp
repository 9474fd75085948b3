#include "host/ranks/sighting_document.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "host/log/rank_list.h"
#include "host/report/json_fields.h"
#include "host/report/json_reader.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

/// The ranks of the job in a group, by their places in it, as far as its members have reports.
std::map<int64_t, int64_t> members_of(const std::string& group, const Job& job) {
    std::map<int64_t, int64_t> members;
    for (const auto& [rank, reports] : job.ranks) {
        const RankGroup* known = reports.front()->group_called(group);
        if (known != nullptr && known->rank >= 0) members[known->rank] = rank;
    }
    return members;
}

/// `key`: of the ranks that it went to or came from.
void name_ranks(Json& operation, const char* key, const Sighting& sighting, const Job& job) {
    if (!operation.is_object() || !fields::text(operation, key).empty()) return;
    const std::string group = fields::text(operation, "group");
    const RankGroup* own = sighting.report->group_called(group);
    if (own == nullptr) return;
    const std::map<int64_t, int64_t> members = members_of(group, job);
    const auto peer = fields::integer(at(operation, "peer"));
    if (!peer && static_cast<int64_t>(members.size()) != own->size) return;
    std::vector<int64_t> ranks;
    for (const auto& [place, rank] : members) {
        if (peer ? place == *peer : place != own->rank) ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    if (!ranks.empty()) operation[key] = rank_list(ranks);
}

}  // namespace

SightingDocument document_of(const Sighting& sighting, const Job& job) {
    ReadResult read = read_report(sighting.report->path);
    SightingDocument out;
    if (!read.ok()) return out;
    out.cwd = fields::text(at(read.document, "run"), "cwd");
    const Json& findings = fields::list(read.document, "findings");
    if (sighting.finding->position >= findings.size()) return out;
    Json finding = findings[sighting.finding->position];
    if (finding.contains("received")) name_ranks(finding["received"], "from", sighting, job);
    if (finding.contains("sent") && finding["sent"].is_array()) {
        for (Json& sent : finding["sent"]) name_ranks(sent, "to", sighting, job);
    }
    out.finding = std::move(finding);
    return out;
}

}  // namespace numsan
