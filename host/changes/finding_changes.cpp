#include "host/changes/finding_changes.h"

#include <algorithm>

#include "host/finding/mechanisms.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

/// What two findings are compared by where their fingerprints differ.
struct Identity {
    std::string mechanism;
    std::string op;
    std::string phase;
    std::string code;  ///< the line's text; empty: not comparable
    std::string file;  ///< its last part
    std::string function;
    std::string module;
};

Identity identity_of(const KnownFinding& finding) {
    const Json& document = finding.document;
    const Json& place = at(document, "location");
    Identity made;
    made.mechanism = fields::text(document, "code");
    // An overflow, too: how fast decides which it is called.
    if (made.mechanism == info(Mechanism::HYPER)->code) made.mechanism = info(Mechanism::OVF)->code;
    made.op = fields::text(document, "op");
    made.phase = fields::text(document, "phase");
    made.code = fields::text(place, "code");
    const std::string file = fields::text(place, "file");
    made.file = file.substr(file.rfind('/') + 1);
    made.function = fields::text(place, "function");
    made.module = fields::text(document, "module");
    return made;
}

bool same_finding(const Identity& a, const Identity& b) {
    if (a.code.empty() || a.code != b.code || a.op != b.op || a.phase != b.phase || a.mechanism != b.mechanism) {
        return false;
    }
    return (a.file != b.file) + (a.function != b.function) + (a.module != b.module) <= 1;
}

std::string fingerprint_of(const KnownFinding& finding) { return fields::text(finding.document, "fingerprint"); }

Change change_between(const KnownFinding& before, const KnownFinding& now) {
    const int was = severity_rank(before.severity);
    const int is = severity_rank(now.severity);
    if (is != was) return is > was ? Change::MoreSevere : Change::LessSevere;
    const bool same_module = fields::text(before.document, "module") == fields::text(now.document, "module");
    const bool same_function = function_of(before) == function_of(now);
    return same_module && same_function && same_place(before, now) ? Change::Unchanged : Change::Moved;
}

}  // namespace

bool same_place(const KnownFinding& before, const KnownFinding& now) {
    const Json& was = at(before.document, "location");
    const Json& is = at(now.document, "location");
    return shown_place(was, before.cwd) == shown_place(is, now.cwd) || shown_place(was, "") == shown_place(is, "");
}

std::string function_of(const KnownFinding& finding) {
    return fields::text(at(finding.document, "location"), "function");
}

std::string place_text(const KnownFinding& finding) {
    const std::string place = shown_place(at(finding.document, "location"), finding.cwd);
    return place.empty() ? "no line" : place;
}

const char* to_string(Change change) {
    switch (change) {
        case Change::Appeared: return "appeared";
        case Change::MoreSevere: return "more severe";
        case Change::Moved: return "moved";
        case Change::LessSevere: return "less severe";
        case Change::Vanished: return "vanished";
        case Change::Unchanged: return "unchanged";
    }
    return "";
}

std::vector<ChangedFinding> finding_changes(const KnownFindings& base, const KnownFindings& now) {
    return finding_changes(base.findings(), now.findings());
}

std::vector<ChangedFinding> finding_changes(std::vector<const KnownFinding*> before,
                                            const std::vector<const KnownFinding*>& now) {
    std::vector<ChangedFinding> changes;
    std::map<std::string, size_t> by_fingerprint;  // -> place in `before`
    for (size_t i = 0; i < before.size(); ++i) by_fingerprint.emplace(fingerprint_of(*before[i]), i);
    const auto pair = [&](size_t i, const KnownFinding* finding) {
        changes.push_back({change_between(*before[i], *finding), before[i], finding});
        before[i] = nullptr;
    };
    std::vector<const KnownFinding*> left;
    for (const KnownFinding* finding : now) {
        const auto found = by_fingerprint.find(fingerprint_of(*finding));
        if (found != by_fingerprint.end() && !found->first.empty() && before[found->second] != nullptr) {
            pair(found->second, finding);
        } else {
            left.push_back(finding);
        }
    }
    std::multimap<std::string, std::pair<size_t, Identity>> by_line;  // text of the line -> place in `before`
    for (size_t i = 0; i < before.size(); ++i) {
        if (before[i] == nullptr) continue;
        Identity identity = identity_of(*before[i]);
        by_line.emplace(identity.code, std::pair(i, identity));
    }
    std::vector<const KnownFinding*> after;
    for (const KnownFinding* finding : left) {
        const Identity identity = identity_of(*finding);
        auto [first, last] = by_line.equal_range(identity.code);
        const auto found = std::find_if(first, last, [&](const auto& item) {
            return before[item.second.first] != nullptr && same_finding(item.second.second, identity);
        });
        if (found != last) {
            pair(found->second.first, finding);
        } else {
            after.push_back(finding);
        }
    }
    std::erase(before, nullptr);
    for (const KnownFinding* finding : after) changes.push_back({Change::Appeared, nullptr, finding});
    for (const KnownFinding* finding : before) changes.push_back({Change::Vanished, finding, nullptr});
    const auto key = [](const ChangedFinding& one) {
        return std::pair(one.change, (one.now != nullptr ? one.now : one.before)->place);
    };
    std::sort(changes.begin(), changes.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    return changes;
}

bool any_news(const std::vector<ChangedFinding>& changes) {
    return std::any_of(changes.begin(), changes.end(), [](const ChangedFinding& one) {
        return one.change == Change::Appeared || one.change == Change::MoreSevere;
    });
}

}  // namespace numsan
