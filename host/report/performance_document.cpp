// The report's `performance`.
#include <nlohmann/json.hpp>

#include "host/finding/slow/slow_run.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

Json finding_of(const SlowFinding& finding) {
    const SlowCauseInfo& row = info(finding.cause);
    Json out = Json::object();
    out["code"] = row.code;
    out["cause"] = row.slug;
    out["severity"] = "info";
    out["title"] = row.title;
    out["op"] = finding.op.empty() ? Json(nullptr) : Json(finding.op);
    out["location"] = place_document(finding.location);
    out["seconds"] = finding.seconds;
    out["share"] = finding.share;
    out["count"] = finding.count;
    out["measured"] = finding.measured;
    out["help"] = Json::array({row.help});
    if (*row.more_help != '\0') out["help"].push_back(row.more_help);
    return out;
}

}  // namespace

Json performance_document(const SlowRun& run) {
    Json out = {{"steps", run.steps}, {"step_s", run.step_s}, {"findings", Json::array()}};
    for (const SlowFinding& finding : run.findings) out["findings"].push_back(finding_of(finding));
    out["not_measured"] = run.not_measured;
    return out;
}

}  // namespace numsan
