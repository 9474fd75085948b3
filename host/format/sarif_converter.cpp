// SARIF 2.1.0 (OASIS): rules from the table of mechanisms, a finding of many reports once.
#include <array>
#include <map>

#include "host/base/version.h"
#include "host/explain/explain.h"
#include "host/finding/mechanisms.h"
#include "host/format/converters.h"
#include "host/format/known_converter.h"
#include "host/format/markdown.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::list;
using fields::number;

constexpr char kRoot[] = "SRCROOT";

/// Braces stand for arguments in a message and are doubled; "[x](1)" would be a link.
std::string message_text(const std::string& words) {
    std::string out;
    for (size_t i = 0; i < words.size(); ++i) {
        const char c = words[i];
        if (c == '{' || c == '}') out += c;
        if (c == '(' && i > 0 && words[i - 1] == ']') out += ' ';
        out += c;
    }
    return out;
}

Json message(const std::string& words) { return {{"text", message_text(words)}}; }

/// Percent-encoded (RFC 3986), also what could be taken for a scheme.
std::string uri_path(const std::string& path) {
    constexpr std::string_view kPlain = "-._~/!$'()*,;=@";
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (letter || kPlain.find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
        }
    }
    return out;
}

/// A rule of the table, or of a report that a newer version wrote.
Json rule_document(const std::string& code, const std::string& id, const std::string& name,
                   const std::string& meaning) {
    Json rule = {
        {"id", code}, {"name", id}, {"shortDescription", message(name)}, {"fullDescription", message(meaning)}};
    const std::string page = explain_word(code).text;
    if (!page.empty()) {
        rule["help"] = message(page);
        rule["help"]["markdown"] = message_text(markdown::fenced(page, "text"));
    }
    rule["defaultConfiguration"] = {{"level", "error"}};
    rule["properties"] = {{"tags", {"numerics"}}};
    return rule;
}

class Rules {
  public:
    Rules() {
        for (const MechanismInfo& row : kMechanisms) add(row.code, row.id, row.name, row.meaning);
    }

    size_t index_of(const Json& finding) {
        const std::string code = fields::text(finding, "code");
        const auto known = numbers_.find(code);
        if (known != numbers_.end()) return known->second;
        const std::string id = fields::text(finding, "mechanism");
        return add(code.empty() ? "NS000" : code, id.empty() ? "unknown" : id, "a rule that this version does not know",
                   "the version of numsan that wrote the report has a page of it");
    }

    const Json& document() const { return rules_; }

  private:
    size_t add(const std::string& code, const std::string& id, const std::string& name, const std::string& meaning) {
        const auto [place, added] = numbers_.emplace(code, rules_.size());
        if (added) rules_.push_back(rule_document(code, id, name, meaning));
        return place->second;
    }

    std::map<std::string, size_t> numbers_;
    Json rules_ = Json::array();
};

const char* level_of(const std::string& severity) {
    return severity == "error" ? "error" : severity == "warning" ? "warning" : "note";
}

class SarifConverter : public KnownConverter {
  public:
    std::string document() override {
        root_ = known().runs().empty() ? "" : fields::text(known().runs().begin()->second.run, "cwd");
        Rules rules;
        Json results = Json::array();
        for (const KnownFinding* finding : known().findings()) results.push_back(result_of(*finding, rules));
        Json driver = {{"name", "numsan"}};
        driver["version"] = known().runs().empty() ? NUMSAN_VERSION : known().runs().begin()->second.version;
        driver["rules"] = rules.document();
        Json run = {{"tool", {{"driver", std::move(driver)}}}};
        if (root_.starts_with('/')) {
            run["originalUriBaseIds"] = {{kRoot, {{"uri", "file://" + uri_path(root_ == "/" ? "" : root_) + "/"}}}};
        }
        run["invocations"] = invocations();
        run["results"] = std::move(results);
        return document_text({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                              {"version", "2.1.0"},
                              {"runs", Json::array({std::move(run)})}});
    }

  private:
    /// Null where no file can be shown: "<string>", a cell of a notebook.
    Json physical_location(const Json& place) const {
        const std::string file = fields::text(place, "file");
        if (file.empty() || file.starts_with('<') || number(place, "cell") > 0) return nullptr;
        const std::string below = shown_file(place, root_);
        Json artifact;
        if (!below.starts_with('/')) {
            artifact["uri"] = uri_path(below);
            if (root_.starts_with('/')) artifact["uriBaseId"] = kRoot;
        } else {
            artifact["uri"] = "file://" + uri_path(file);
        }
        Json physical = {{"artifactLocation", std::move(artifact)}};
        if (const auto line = number(place, "line"); line > 0 && line <= INT32_MAX) {
            physical["region"] = {{"startLine", static_cast<int64_t>(line)}};
            const std::string code = fields::text(place, "code");
            if (!code.empty()) physical["region"]["snippet"] = {{"text", code}};
        }
        return physical;
    }

    Json location(const Json& place, const std::string& module, const std::string& what) const {
        Json out = Json::object();
        if (Json physical = physical_location(place); !physical.is_null())
            out["physicalLocation"] = std::move(physical);
        Json logical = Json::array();
        if (!module.empty()) logical.push_back({{"fullyQualifiedName", module}, {"kind", "module"}});
        const std::string function = fields::text(place, "function");
        if (!function.empty()) logical.push_back({{"fullyQualifiedName", function}, {"kind", "function"}});
        if (!logical.empty()) out["logicalLocations"] = std::move(logical);
        if (!what.empty()) out["message"] = message(what);
        return out;
    }

    /// Code scanning wants a file for each result: the program's own where no line is known.
    Json main_location(const KnownFinding& known) const {
        const Json& finding = known.document;
        const std::string module = fields::text(finding, "module");
        Json place = location(at(finding, "location"), module, "");
        if (!place.contains("physicalLocation")) {
            const auto run = this->known().runs().find(known.place.first);
            std::string file = run == this->known().runs().end() ? "" : program_file(run->second.run);
            if (!file.empty() && !file.starts_with('/') && known.cwd.starts_with('/')) file = known.cwd + "/" + file;
            if (Json physical = physical_location({{"file", file}}); !physical.is_null())
                place["physicalLocation"] = std::move(physical);
        }
        return place;
    }

    Json related_locations(const Json& finding) const {
        Json out = Json::array();
        const auto add = [&](const Json& place, const std::string& module, const std::string& what) {
            if (!place.is_object()) return;
            Json made = location(place, module, what);
            made["id"] = out.size() + 1;
            out.push_back(std::move(made));
        };
        const Json& forward = at(finding, "forward");
        const Json& line = at(forward, "location");
        if (line != at(finding, "location")) {
            add(line, fields::text(forward, "module"), "the forward operator " + fields::text(forward, "op"));
        }
        add(at(finding, "user_location"), "", "called from here");
        add(at(finding, "backward_location"), "", "backward started from here");
        add(at(finding, "written_location"), "", "the tensor was last written here");
        return out;
    }

    Json result_of(const KnownFinding& known, Rules& rules) const {
        const Json& finding = known.document;
        const size_t rule = rules.index_of(finding);
        Json out = Json::object();
        out["ruleId"] = rules.document()[rule]["id"];
        out["ruleIndex"] = rule;
        out["level"] = level_of(known.severity);
        out["message"] = result_message(known);
        out["locations"] = Json::array({main_location(known)});
        if (Json related = related_locations(finding); !related.empty()) out["relatedLocations"] = std::move(related);
        const std::string fingerprint = fields::text(finding, "fingerprint");
        if (!fingerprint.empty()) out["partialFingerprints"] = {{"numsan/v1", fingerprint}};
        out["occurrenceCount"] = known.reports;
        Json properties = {{"op", fields::text(finding, "op")},
                           {"phase", fields::text(finding, "phase")},
                           {"step", static_cast<int64_t>(known.first_step)},
                           {"category", at(finding, "category")}};
        if (!known.ranks.empty()) properties["ranks"] = ranks_text(known.ranks);
        properties["report"] = known.path;
        out["properties"] = std::move(properties);
        return out;
    }

    static Json result_message(const KnownFinding& known) {
        const Json& finding = known.document;
        std::string words = title_of_any_run(finding);
        const std::string ranks = ranks_text(known.ranks);
        words += "; born in step " + digits(known.first_step) + (ranks.empty() ? "" : " on " + ranks);
        std::string help;
        for (const Json& line : list(finding, "help")) {
            if (line.is_string()) help += (help.empty() ? "" : "; ") + fields::clean(line.get<std::string>());
        }
        Json out = message(words + (help.empty() ? "" : ". Help: " + help));
        TextStyle style;
        style.cwd = known.cwd;
        out["markdown"] = message_text(markdown::fenced(render_finding(finding, style), "text"));
        return out;
    }

    Json invocations() const {
        Json out = Json::array();
        for (const auto& [number, one] : known().runs()) out.push_back(invocation(one));
        return out;
    }

    static Json invocation(const KnownRun& known) {
        const Json& run = known.run;
        Json out = Json::object();
        const auto status = fields::integer(at(run, "exit_status"));
        out["executionSuccessful"] = status && *status == 0 && known.verdict != "incomplete";
        if (status) out["exitCode"] = static_cast<int64_t>(*status);
        const std::string started = fields::text(run, "started");
        const std::string ended = fields::text(run, "ended");
        if (is_time(started)) out["startTimeUtc"] = started;
        if (is_time(ended)) out["endTimeUtc"] = ended;
        const std::string host = fields::text(run, "host");
        if (!host.empty()) out["machine"] = host;
        if (const auto pid = fields::integer(at(run, "pid"))) out["processId"] = static_cast<int64_t>(*pid);
        Json words = Json::array();
        for (const Json& word : list(run, "argv")) {
            if (word.is_string()) words.push_back(word);
        }
        out["arguments"] = std::move(words);
        const std::string cwd = fields::text(run, "cwd");
        if (cwd.starts_with('/')) out["workingDirectory"] = {{"uri", "file://" + uri_path(cwd)}};
        if (known.verdict == "incomplete") {
            out["toolExecutionNotifications"] = Json::array(
                {{{"level", "warning"},
                  {"message", message(known.path + ": the run is incomplete: silence does not mean health there")}}});
        }
        return out;
    }

    /// RFC 3339 in UTC, as reports have it.
    static bool is_time(const std::string& text) {
        constexpr std::string_view kForm = "0000-00-00T00:00:00";
        if (text.size() <= kForm.size() || !text.ends_with('Z')) return false;
        for (size_t i = 0; i < kForm.size(); ++i) {
            const bool digit = text[i] >= '0' && text[i] <= '9';
            if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
        }
        return true;
    }

    std::string root_;
};

}  // namespace

std::unique_ptr<Converter> sarif_converter() { return std::make_unique<SarifConverter>(); }

}  // namespace numsan
