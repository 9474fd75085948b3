// Reading and matching of allow-list rules.
#include "host/finding/allow_list.h"

#include <algorithm>
#include <charconv>

#include "host/finding/tables.h"
#include "host/options/nearest.h"
#include "host/options/one_line.h"
#include "host/options/user_file.h"

namespace numsan {
namespace {

constexpr const char* kFields[] = {"op", "file", "module", "code", "category"};  // in the order of AllowList::Field
constexpr size_t kMostComplaints = 20;
constexpr std::string_view kBlanks = " \t\r\v\f";

/// The words of a line up to its comment; a `#` inside a word is part of it.
std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    size_t at = 0;
    while ((at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos && line[at] != '#') {
        const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

std::string unknown_field(std::string_view field, std::string_view word) {
    std::string known;
    for (const char* name : kFields) known += (known.empty() ? "" : ", ") + std::string(name);
    const bool op = word.find("::") != std::string_view::npos;  // the bare name of an operator was written
    const std::string guess = op ? "op" : nearest(field, {std::begin(kFields), std::end(kFields)});
    return "field " + quoted(field) + ": expected one of " + known +
           ", each followed by ':' and a value; did you mean '" + guess + ":'?";
}

template <typename Rows, typename Name>
std::string unknown_value(const char* field, std::string_view value, const char* expected, const Rows& rows,
                          Name name) {
    std::vector<std::string> known;
    for (const auto& row : rows) known.emplace_back(name(row));
    return std::string("field '") + field + "': bad value " + quoted(value) + ": expected " + expected +
           "; did you mean '" + nearest(value, known) + "'?";
}

/// A name as the rule has it, with or without its overload ("aten::div.Tensor" is "aten::div" too).
bool op_matches(const std::string& pattern, const std::string& op) {
    return glob_matches(pattern, op) || glob_matches(pattern, std::string_view(op).substr(0, op.find('.')));
}

/// The whole path, or what follows any of its slashes.
bool path_matches(std::string_view pattern, std::string_view path) {
    if (glob_matches(pattern, path)) return true;
    for (size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) {
        if (glob_matches(pattern, path.substr(at + 1))) return true;
    }
    return false;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
    size_t p = 0;
    size_t t = 0;
    size_t star = std::string_view::npos;
    size_t resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Empty when the word is good, else what is wrong with it.
std::string AllowList::read_condition(std::string_view word, Condition& out) {
    const size_t colon = word.find(':');
    const std::string_view name = word.substr(0, colon);
    const auto* const field = std::find(std::begin(kFields), std::end(kFields), name);
    if (colon == std::string_view::npos || field == std::end(kFields)) return unknown_field(name, word);
    std::string_view value = word.substr(colon + 1);
    if (value.empty()) return "field '" + std::string(name) + "': expected a value after the ':'";
    out.field = static_cast<Field>(field - std::begin(kFields));
    switch (out.field) {
        case Field::Op:
        case Field::Module: break;
        case Field::File: {
            if (const size_t last = value.rfind(':'); last != std::string_view::npos) {
                const std::string_view number = value.substr(last + 1);
                const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out.line);
                if (error != std::errc() || end != number.data() + number.size() || out.line < 1 || last == 0) {
                    return "field 'file': bad value " + quoted(value) + ": expected PATH or PATH:LINE, lines from 1";
                }
                value = value.substr(0, last);
            }
            while (value.starts_with("./")) value.remove_prefix(2);
            if (value.empty()) return "field 'file': expected a path after the ':'";
            break;
        }
        case Field::Code:
            for (const MechanismInfo& row : kMechanisms) {
                if (value == row.code) out.mechanism = row.value;
            }
            if (out.mechanism != Mechanism::None) return {};
            return unknown_value("code", value, "a code such as NS104", kMechanisms,
                                 [](const MechanismInfo& row) { return row.code; });
        case Field::Category:
            if (find_category(value).has_value()) break;
            return unknown_value("category", value, "a category such as N8", categories(),
                                 [](const Category& row) { return row.id; });
    }
    out.pattern = value;
    return {};
}

AllowList AllowList::parse(std::string_view text, const std::string& name, std::vector<std::string>& complaints) {
    AllowList list;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    size_t bad = 0;
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        Rule rule;
        std::string wrong;
        for (const std::string_view word : words_of(text.substr(0, end))) {
            Condition condition{};
            wrong = read_condition(word, condition);
            if (!wrong.empty()) break;
            rule.conditions.push_back(std::move(condition));
            rule.text += (rule.text.empty() ? "" : " ") + std::string(word);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
        if (wrong.empty() && !rule.conditions.empty()) list.rules_.push_back(std::move(rule));
        if (!wrong.empty() && ++bad <= kMostComplaints) {
            complaints.push_back(name);
            complaints.back().append(":" + std::to_string(number) + ": ").append(wrong).append("; the line is ignored");
        }
    }
    if (bad > kMostComplaints) {
        complaints.push_back(name + ": " + std::to_string(bad - kMostComplaints) + " further bad lines are ignored");
    }
    return list;
}

AllowList AllowList::read(const std::string& path, std::vector<std::string>& complaints) {
    if (path.empty()) return {};
    const UserFile file = read_user_file(path);
    if (file.problem.empty()) return parse(file.text, path, complaints);
    complaints.push_back("allow: " + quoted(path) + " " + file.problem + "; no finding is suppressed");
    return {};
}

bool AllowList::holds(const Condition& condition, const Finding& finding, const std::string& cwd) {
    const ForwardOp* forward = finding.forward ? &*finding.forward : nullptr;
    const auto at = [&](const std::optional<Place>& place) {
        if (!place || (condition.line != 0 && place->line != condition.line)) return false;
        const std::string& file = place->file;
        return path_matches(condition.pattern, file.starts_with('/') || cwd.empty() ? file : cwd + "/" + file);
    };
    const auto in = [&](const std::optional<std::string>& module) {
        return module && glob_matches(condition.pattern, *module);
    };
    switch (condition.field) {
        case Field::Op:
            return op_matches(condition.pattern, finding.op) ||
                   (forward != nullptr && op_matches(condition.pattern, forward->op));
        case Field::File:
            return at(finding.location) || at(finding.user_location) || (forward != nullptr && at(forward->location));
        case Field::Module: return in(finding.module) || (forward != nullptr && in(forward->module));
        case Field::Code: return finding.mechanism == condition.mechanism;
        case Field::Category: return to_string(finding.category.id) == condition.pattern;
    }
    return false;
}

const std::string* AllowList::match(const Finding& finding, const std::string& cwd) const {
    for (const Rule& rule : rules_) {
        const bool all = std::all_of(rule.conditions.begin(), rule.conditions.end(),
                                     [&](const Condition& condition) { return holds(condition, finding, cwd); });
        if (all) return &rule.text;
    }
    return nullptr;
}

std::vector<std::string> AllowList::rules() const {
    std::vector<std::string> texts;
    for (const Rule& rule : rules_) texts.push_back(rule.text);
    return texts;
}

bool AllowList::names_modules() const {
    return std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) {
        return std::any_of(rule.conditions.begin(), rule.conditions.end(),
                           [](const Condition& condition) { return condition.field == Field::Module; });
    });
}

}  // namespace numsan
