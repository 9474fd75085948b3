#include "host/format/known_findings.h"

#include <algorithm>

#include "host/report/text_layout.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::list;
using fields::number;

void merge(KnownFinding& into, KnownFinding&& other) {
    if (other.place < into.place) {
        std::swap(into.document, other.document);
        std::swap(into.place, other.place);
        std::swap(into.path, other.path);
        std::swap(into.cwd, other.cwd);
    }
    if (severity_rank(other.severity) > severity_rank(into.severity)) into.severity = other.severity;
    into.reports += other.reports;
    into.first_step = std::min(into.first_step, other.first_step);
    into.ranks.merge(other.ranks);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string finding_key(const Json& finding) {
    std::string fingerprint = fields::text(finding, "fingerprint");
    if (!fingerprint.empty()) return fingerprint;
    return fields::text(finding, "code") + "|" + fields::text(finding, "op") + "|" +
           shown_place(at(finding, "location"), "") + "|" + fields::text(finding, "module");
}

int severity_rank(const std::string& severity) {
    return severity == "error" ? 3 : severity == "warning" ? 2 : severity == "info" ? 1 : 0;
}

void KnownFindings::add(const SourceReport& report) {
    const Json& run = at(report.document, "run");
    const Json& findings = list(report.document, "findings");
    const std::string cwd = fields::text(run, "cwd");
    const auto rank = fields::integer(at(run, "rank"));
    size_t position = 0;
    std::set<std::string> here;
    for (const Json& finding : findings) {
        const FindingPlace place{report.number, position++};
        const std::string key = finding_key(finding);
        const auto step = number(finding, "step");
        KnownFinding one;
        one.severity = fields::text(finding, "severity");
        one.reports = here.insert(key).second ? 1 : 0;
        one.first_step = step;
        one.place = place;
        if (rank) one.ranks.insert(static_cast<int64_t>(*rank));
        const auto known = by_key_.find(key);
        if (known == by_key_.end() || place < known->second.place) {
            one.document = finding;
            one.path = report.path;
            one.cwd = cwd;
        }
        if (known == by_key_.end()) {
            by_key_.emplace(key, std::move(one));
        } else {
            merge(known->second, std::move(one));
        }
    }
    KnownRun kept{report.path, run, fields::text(at(report.document, "tool"), "version"),
                  fields::text(report.document, "verdict")};
    for (const Json& rule : list(report.document, "suppressed"))
        kept.suppressed = kept.suppressed || number(rule, "count") > 0;
    kept.run.erase("options");
    kept.run.erase("devices");
    runs_.emplace(report.number, std::move(kept));
}

void KnownFindings::absorb(ReportSink& other) {
    auto& from = dynamic_cast<KnownFindings&>(other);
    for (auto& [key, finding] : from.by_key_) {
        const auto known = by_key_.find(key);
        if (known == by_key_.end()) {
            by_key_.emplace(key, std::move(finding));
        } else {
            merge(known->second, std::move(finding));
        }
    }
    from.by_key_.clear();
    runs_.merge(from.runs_);
}

std::vector<const KnownFinding*> KnownFindings::findings() const {
    std::vector<const KnownFinding*> all;
    for (const auto& [key, finding] : by_key_) all.push_back(&finding);
    std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->place < b->place; });
    return all;
}

size_t KnownFindings::incomplete_runs() const {
    return static_cast<size_t>(std::count_if(runs_.begin(), runs_.end(),
                                             [](const auto& item) { return item.second.verdict == "incomplete"; }));
}

size_t KnownFindings::suppressed_runs() const {
    return static_cast<size_t>(
        std::count_if(runs_.begin(), runs_.end(), [](const auto& item) { return item.second.suppressed; }));
}

std::string ranks_text(const std::set<int64_t>& ranks) {
    std::string out;
    for (auto it = ranks.begin(); it != ranks.end();) {
        const int64_t first = *it;
        int64_t last = first;
        for (++it; it != ranks.end() && *it == last + 1; ++it) last = *it;
        out += (out.empty() ? "" : ", ") + std::to_string(first);
        if (last != first) out += "-" + std::to_string(last);
    }
    if (out.empty()) return out;
    return (ranks.size() == 1 ? "rank " : "ranks ") + out;
}

std::string program_file(const Json& run) {
    std::vector<std::string> words;
    for (const Json& word : list(run, "argv")) {
        if (word.is_string()) words.push_back(fields::clean(word.get_ref<const std::string&>()));
    }
    if (words.empty() || !last_part(words[0]).starts_with("python")) return words.empty() ? "" : words[0];
    for (size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "-m" || words[i] == "-c") return "";
        if (words[i] == "-W" || words[i] == "-X") {
            ++i;
        } else if (!words[i].starts_with("-")) {
            return words[i];
        }
    }
    return "";
}

std::string program_of(const Json& run) {
    const std::string file = program_file(run);
    if (!file.empty()) return last_part(file);
    const Json& argv = list(run, "argv");
    for (size_t i = 1; i < argv.size(); ++i) {
        if (argv[i] == "-m" && i + 1 < argv.size() && argv[i + 1].is_string()) {
            return "-m " + fields::clean(argv[i + 1].get_ref<const std::string&>());
        }
        if (argv[i] == "-c") return "python -c";
    }
    return argv.empty() || !argv[0].is_string() ? "unknown program"
                                                : last_part(fields::clean(argv[0].get_ref<const std::string&>()));
}

std::string title_of_any_run(const Json& finding) {
    std::string title = fields::text(finding, "title");
    constexpr std::string_view kOfRun = " of this run: ";
    const size_t end = title.find(kOfRun);
    if (title.starts_with("first ") && end != std::string::npos) title.erase(0, end + kOfRun.size());
    return quote_operators(title);
}

}  // namespace numsan
