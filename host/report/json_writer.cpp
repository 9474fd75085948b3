// Report -> JSON document. Every number that is not finite becomes null or the value the schema has for it.
#include "host/report/json_writer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "host/base/version.h"
#include "host/cause/title.h"
#include "host/finding/tables.h"
#include "host/log/format.h"
#include "host/report/json_fields.h"

namespace numsan {
namespace {

using fields::finite_or_null;
using fields::Json;
using fields::text_or_null;

template <typename T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json seconds_or_null(const std::optional<double>& value) { return value ? finite_or_null(*value) : Json(nullptr); }

Json strings(const std::vector<std::string>& list) {
    Json out = Json::array();
    for (const std::string& text : list) out.push_back(text);
    return out;
}

template <typename Map>
Json object_of(const Map& map) {
    Json out = Json::object();
    for (const auto& [key, value] : map) out[key] = value;
    return out;
}

Json stack_document(const std::vector<StackFrame>& stack) {
    Json out = Json::array();
    for (const StackFrame& frame : stack) {
        Json entry = Json::object();
        entry["kind"] = frame.kind;
        entry["function"] = frame.function;
        entry["file"] = or_null(frame.file);
        entry["line"] = or_null(frame.line);
        out.push_back(std::move(entry));
    }
    return out;
}

Json category_document(const CategoryGuess& guess) {
    const Category& row = guess.id.info();
    const double confidence = std::isfinite(guess.confidence) ? std::clamp(guess.confidence, 0.0, 1.0) : 0.0;
    return {{"id", row.id}, {"slug", row.slug}, {"name", row.name}, {"confidence", confidence}};
}

Json alternatives_document(const std::vector<CategoryGuess>& guesses) {
    Json out = Json::array();
    for (const CategoryGuess& guess : guesses) out.push_back(category_document(guess));
    return out;
}

Json weighed_document(const std::vector<WeighedFact>& facts) {
    Json out = Json::array();
    for (const WeighedFact& fact : facts)
        out.push_back({{"fact", fact.name}, {"category", to_string(fact.category)}, {"weight", fact.weight}});
    return out;
}

/// The sentences, and beside them what each changes.
void add_help(Json& out, const std::vector<HelpLine>& lines) {
    Json help = Json::array(), fixes = Json::array();
    for (const HelpLine& line : lines) {
        Json kinds = Json::array();
        for (size_t row = 0; row < std::size(kFixKinds); ++row) {
            if (line.fixes.contains(row)) kinds.push_back(kFixKinds[row].id);
        }
        help.push_back(line.text);
        fixes.push_back(std::move(kinds));
    }
    out["help"] = std::move(help);
    out["fixes"] = std::move(fixes);
}

Json forward_document(const std::optional<ForwardOp>& forward) {
    if (!forward) return nullptr;
    Json out = Json::object();
    out["op"] = forward->op;
    out["node"] = forward->node;
    out["location"] = place_document(forward->location);
    out["module"] = or_null(forward->module);
    out["stack"] = stack_document(forward->stack);
    return out;
}

Json contaminated_document(const std::vector<Contaminated>& list) {
    Json out = Json::array();
    for (const Contaminated& item : list) {
        if (!is_state(item.kind)) continue;
        out.push_back({{"kind", to_string(item.kind)}, {"name", item.name}, {"since_step", item.since_step}});
    }
    return out;
}

Json history_document(const std::vector<PastMagnitude>& history) {
    Json out = Json::array();
    for (const PastMagnitude& past : history)
        out.push_back({{"step", past.step}, {"absmax", past.absmax ? finite_or_null(*past.absmax) : Json(nullptr)}});
    return out;
}

Json chain_document(const std::vector<ChainLink>& chain) {
    const auto magnitude = [](const std::optional<double>& value) {
        return value ? finite_or_null(*value) : Json(nullptr);
    };
    Json out = Json::array();
    for (const ChainLink& link : chain) {
        Json entry = {{"role", link.before ? "before" : "after"},
                      {"op", link.op},
                      {"seq", number(link.seq)},
                      {"step", link.step},
                      {"dtype", info(link.dtype).name},
                      {"bad", link.bad},
                      {"absmax", magnitude(link.absmax)},
                      {"absmin", magnitude(link.absmin)},
                      {"location", place_document(link.location)}};
        if (!link.history.empty()) entry["history"] = history_document(link.history);
        out.push_back(std::move(entry));
    }
    return out;
}

/// `ranks`: the key of the ranks that it went to or came from.
Json collective_document(const CollectiveFact& fact, const char* ranks) {
    Json out = {{"op", fact.op},
                {"group", fact.group},
                {"description", fact.description},
                {"number", fact.number > 0 ? Json(fact.number) : Json(nullptr)},
                {"peer", or_null(fact.peer)},
                {ranks, text_or_null(fact.ranks)}};
    if (fact.tag) out["tag"] = *fact.tag;
    out["step"] = fact.step;
    out["seq"] = number(fact.seq);
    return out;
}

Json groups_document(const std::vector<GroupFacts>& groups) {
    Json out = Json::array();
    for (const GroupFacts& group : groups)
        out.push_back({{"name", group.name},
                       {"description", group.description},
                       {"rank", group.rank},
                       {"size", group.size},
                       {"ranks", text_or_null(group.ranks)},
                       {"collectives", group.collectives}});
    return out;
}

Json run_document(const RunSummary& run) {
    const bool known_tier = run.tier == "sentinel" || run.tier == "boundary" || run.tier == "off";
    Json out = Json::object();
    out["id"] = run.run_id;
    out["argv"] = strings(run.argv);
    out["cwd"] = run.cwd;
    out["pid"] = run.pid;
    if (!run.process.empty()) out["process"] = run.process;
    out["host"] = run.host;
    out["rank"] = or_null(run.launch.rank);
    out["world_size"] = or_null(run.launch.world_size);
    if (run.launch.local_rank) out["local_rank"] = *run.launch.local_rank;
    if (run.launch.launcher) out["launcher"] = *run.launch.launcher;
    if (run.launch.job) out["job"] = *run.launch.job;
    if (!run.groups.empty()) out["groups"] = groups_document(run.groups);
    out["started"] = run.started;
    out["ended"] = or_null(run.ended);
    out["exit_status"] = or_null(run.exit_status);
    out["signal"] = or_null(run.signal);
    out["framework"] =
        run.framework_version ? Json{{"name", "pytorch"}, {"version", *run.framework_version}} : Json(nullptr);
    out["python"] = or_null(run.python_version);
    out["devices"] = Json::array();
    for (const DeviceFacts& device : run.devices)
        out["devices"].push_back(
            {{"index", device.index}, {"name", device.name}, {"compute_capability", device.compute_capability}});
    out["options"] = object_of(run.options);
    out["tier"] = known_tier ? run.tier : "full";
    if (!run.tiers.empty()) out["tiers"] = object_of(run.tiers);
    out["steps"] = run.steps;
    out["random_seed"] = nullptr;
    return out;
}

Json coverage_document(const RunSummary& run) {
    Json out = {{"ops", run.ops},         {"scanned", run.scanned},
                {"bytes", run.bytes},     {"skipped", object_of(run.skipped)},
                {"dropped", run.dropped}, {"blind_spots", strings(run.blind_spots)}};
    if (!run.forgotten.empty()) out["forgotten"] = object_of(run.forgotten);
    if (run.launches) out["kernels"] = {{"launches", *run.launches}, {"by_name", object_of(run.kernels)}};
    return out;
}

Json cost_document(const RunSummary& run) {
    return {{"wall_s", std::isfinite(run.wall_s) ? run.wall_s : 0.0},
            {"hook_s", seconds_or_null(run.hook_s)},
            {"scan_s", seconds_or_null(run.scan_s)},
            {"host_bytes", or_null(run.host_bytes)},
            {"device_bytes", or_null(run.device_bytes)}};
}

const char* verdict(const Report& report) {
    if (report.run.incomplete || report.run.dropped > 0) return "incomplete";
    return report.findings.empty() ? "clean" : "findings";
}

}  // namespace

Json place_document(const std::optional<Place>& place) {
    if (!place) return nullptr;
    Json out = {
        {"file", place->file}, {"line", place->line}, {"function", place->function}, {"code", or_null(place->code)}};
    if (place->cell) out["cell"] = *place->cell;
    return out;
}

Json launches_document(const std::vector<KernelLaunch>& launches) {
    Json out = Json::array();
    for (const KernelLaunch& launch : launches) {
        out.push_back({{"kernel", launch.kernel},
                       {"call", launch.call},
                       {"grid", launch.grid},
                       {"block", launch.block},
                       {"shared_bytes", launch.shared_bytes},
                       {"stream", "0x" + hex(launch.stream, 1)},
                       {"correlation_id", launch.correlation_id},
                       {"number", launch.number}});
    }
    return out;
}

Json finding_document(const Finding& finding) {
    const MechanismInfo* mechanism = info(finding.mechanism);
    Json out = Json::object();
    out["id"] = finding.id;
    out["fingerprint"] = finding.fingerprint;
    out["code"] = mechanism ? mechanism->code : "NS000";
    out["mechanism"] = to_string(finding.mechanism);
    out["severity"] = to_string(finding.severity);
    out["kind"] = to_string(finding.kind);
    out["title"] = title_of(finding);
    out["op"] = finding.op;
    out["kernel"] = finding.launches.empty() ? Json(nullptr) : Json(finding.launches.back().kernel);
    out["phase"] = to_string(finding.phase);
    out["step"] = finding.step;
    out["seq"] = number(finding.seq);
    out["rank"] = or_null(finding.rank);
    out["location"] = place_document(finding.location);
    out["user_location"] = place_document(finding.user_location);
    out["backward_location"] = place_document(finding.backward_location);
    if (finding.written_location) out["written_location"] = place_document(finding.written_location);
    out["module"] = or_null(finding.module);
    out["stack"] = stack_document(finding.stack);
    out["forward"] = forward_document(finding.forward);
    out["outputs"] = tensors_document(finding.outputs);
    out["inputs"] = tensors_document(finding.inputs);
    if (!finding.launches.empty()) out["launches"] = launches_document(finding.launches);
    out["category"] = category_document(finding.category);
    out["alternatives"] = alternatives_document(finding.alternatives);
    out["evidence"] = strings(finding.evidence);
    out["weighed"] = weighed_document(finding.weighed);
    add_help(out, finding.help);
    out["escape"] = {{"into", to_string(finding.escape.into)},
                     {"name", or_null(finding.escape.name)},
                     {"step", finding.escape.step},
                     {"seq", number(finding.escape.seq)}};
    if (const auto& last = finding.escape.last) {
        out["escape"]["last"] = {{"fate", to_string(last->fate)},
                                 {"op", last->op.empty() ? Json(nullptr) : Json(last->op)},
                                 {"location", place_document(last->location)}};
    }
    if (finding.received) out["received"] = collective_document(*finding.received, "from");
    if (!finding.sent.empty()) out["sent"] = Json::array();
    for (const CollectiveFact& sent : finding.sent) out["sent"].push_back(collective_document(sent, "to"));
    if (!finding.collectives)
        out["collectives"] = nullptr;
    else if (!finding.collectives->empty())
        out["collectives"] = object_of(*finding.collectives);
    out["contaminated"] = contaminated_document(finding.contaminated);
    out["history"] = history_document(finding.history);
    if (!finding.chain.empty()) out["chain"] = chain_document(finding.chain);
    if (!finding.excerpt.empty())
        out["excerpt"] = {{"first", finding.excerpt_line}, {"lines", strings(finding.excerpt)}};
    out["count"] = finding.count;
    out["dump"] = or_null(finding.dump);
    out["taxonomy"] = taxonomy_codes(finding.category.id.info());
    return out;
}

Json birth_document(const Finding& finding) {
    Json out = finding_document(finding);
    out["severity"] = kStopped;
    for (const char* unknown : {"id", "category", "alternatives", "escape", "contaminated", "taxonomy"})
        out.erase(unknown);
    return out;
}

std::string finding_json(const Finding& finding) { return document_text(finding_document(finding)); }
std::string birth_json(const Finding& finding) { return document_text(birth_document(finding)); }

Json report_document(const Report& report) {
    const RunSummary& run = report.run;
    Json findings = Json::array();
    for (const Finding& finding : report.findings) findings.push_back(finding_document(finding));
    Json suppressed = Json::array();
    for (const auto& [rule, count] : run.suppressed) suppressed.push_back({{"rule", rule}, {"count", count}});

    Json out = Json::object();
    out["schema"] = kSchemaMarker;
    out["tool"] = {{"name", "numsan"},
                   {"version", run.version.empty() ? NUMSAN_VERSION : run.version},
                   {"commit", or_null(run.commit)}};
    out["run"] = run_document(run);
    out["coverage"] = coverage_document(run);
    out["cost"] = cost_document(run);
    out["verdict"] = verdict(report);
    out["findings"] = std::move(findings);
    out["noted"] = {{"births", run.births}, {"escaped", run.escaped}, {"absorbed", run.absorbed}};
    if (run.scaler_skips > 0)
        out["noted"]["scaler_skips"] = {{"count", run.scaler_skips}, {"steps", run.skipped_steps}};
    out["suppressed"] = std::move(suppressed);
    if (run.slow) out["performance"] = performance_document(*run.slow);
    for (const auto& [name, section] : run.sections) out[name] = Json::parse(section, nullptr, false);
    return out;
}

std::string document_text(const Json& document) {
    return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_json(const Report& report) { return document_text(report_document(report)); }

}  // namespace numsan
