// An allow-list file: a rule is read again as itself, matches the finding that is made from it, and not an empty one.
#include <algorithm>
#include <map>
#include <optional>

#include "host/finding/allow_list.h"
#include "host/finding/mechanisms.h"
#include "host/finding/tables.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

std::vector<std::string> words_of(const std::string& rule) {
    std::vector<std::string> words;
    for (size_t at = 0; at <= rule.size();) {
        const size_t end = std::min(rule.find(' ', at), rule.size());
        words.push_back(rule.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

Place place_of(const std::string& value) {
    const size_t colon = value.rfind(':');
    if (colon == std::string::npos) return Place{value, 1, "", {}};
    return Place{value.substr(0, colon), std::stoi(value.substr(colon + 1)), "", {}};
}

Finding nothing(CategoryId category) {
    Finding finding;
    finding.category.id = category;
    return finding;
}

/// The finding that a rule describes; none when it asks one field for two values.
std::optional<Finding> described(const std::string& rule) {
    std::map<std::string, std::string> fields;
    for (const std::string& word : words_of(rule)) {
        const size_t colon = word.find(':');
        const std::string value = word.substr(colon + 1);
        if (fields.emplace(word.substr(0, colon), value).first->second != value) return std::nullopt;
    }
    Finding finding = nothing("U");
    for (const auto& [field, value] : fields) {
        if (field == "op") finding.op = value;
        if (field == "file") finding.location = place_of(value);
        if (field == "module") finding.module = value;
        for (const MechanismInfo& row : kMechanisms) {
            if (field == "code" && value == row.code) finding.mechanism = row.value;
        }
        if (field == "category") finding.category.id = find_category(value).value();
    }
    return finding;
}

void check_rule(const AllowList& list, const std::string& rule, size_t position) {
    std::vector<std::string> complaints;
    const AllowList alone = AllowList::parse(rule, "allow.txt", complaints);
    require(complaints.empty(), "a rule's text is accepted", rule);
    require(alone.rules() == std::vector<std::string>{rule}, "a rule's text is that rule", rule);
    if (rule.find('*') == std::string::npos) {
        const bool all = alone.match(nothing("N1"), "") != nullptr && alone.match(nothing("U"), "") != nullptr;
        require(!all, "a rule without a star does not match everything", rule);
    }
    const auto finding = described(rule);
    if (!finding) return;
    for (const char* cwd : {"", "/start"}) {
        require(alone.match(*finding, cwd) != nullptr, "a rule matches what it describes", rule);
        const std::string* first = list.match(*finding, cwd);
        require(first != nullptr, "a rule matches among others too", rule);
        const std::vector<std::string> rules = list.rules();
        const auto found = std::find(rules.begin(), rules.end(), *first) - rules.begin();
        require(static_cast<size_t>(found) <= position, "the first rule that matches is named", *first);
    }
}

void check_list(std::string_view text) {
    std::vector<std::string> complaints;
    const AllowList list = AllowList::parse(text, "allow.txt", complaints);
    const size_t lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    const std::vector<std::string> rules = list.rules();
    require(rules.size() + std::min<size_t>(complaints.size(), 20) <= lines, "a line makes a rule or a complaint");
    require(complaints.size() <= 21, "the log is not flooded");
    for (const std::string& line : complaints) {
        require(line.starts_with("allow.txt:"), "a complaint names the file", line);
        require(one_safe_line(line), "a complaint is one safe line", line);
    }
    bool modules = false;
    for (size_t i = 0; i < std::min<size_t>(rules.size(), 50); ++i) check_rule(list, rules[i], i);
    for (const std::string& rule : rules) modules = modules || (" " + rule).find(" module:") != std::string::npos;
    require(list.names_modules() == modules, "modules are asked for when a rule names one");
}

/// The definition, one cell for each pair of prefixes.
bool described_by(std::string_view pattern, std::string_view text) {
    std::vector<std::vector<bool>> good(pattern.size() + 1, std::vector<bool>(text.size() + 1));
    good[0][0] = true;
    for (size_t p = 1; p <= pattern.size(); ++p) {
        for (size_t t = 0; t <= text.size(); ++t) {
            const bool star = pattern[p - 1] == '*';
            good[p][t] = star ? good[p - 1][t] || (t > 0 && good[p][t - 1])
                              : t > 0 && good[p - 1][t - 1] && pattern[p - 1] == text[t - 1];
        }
    }
    return good[pattern.size()][text.size()];
}

}  // namespace

void fuzz_allow_list(std::string_view text) {
    check_list(text);
    const size_t line = std::min(text.find('\n'), text.size());
    const std::string_view pattern = text.substr(0, std::min<size_t>(line, 100));
    const std::string_view rest = text.substr(line, 100);
    const std::string_view subject = rest.substr(std::min<size_t>(1, rest.size()));
    require(glob_matches(pattern, subject) == described_by(pattern, subject), "stars stand for anything", pattern);
}

}  // namespace numsan::fuzz
