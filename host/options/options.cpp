// Parsing and printing of options; every function walks options.def.
#include "host/options/options.h"

#include <charconv>
#include <cmath>
#include <type_traits>

#include "host/options/nearest.h"
#include "host/options/one_line.h"

namespace numsan {
namespace {

enum class Empty { Required, Optional };

std::string shown(std::string_view text) { return one_line(text, 120); }

std::vector<std::string> split_values(std::string_view values) {
    std::vector<std::string> out;
    while (!values.empty()) {
        const size_t comma = values.find(", ");
        out.emplace_back(values.substr(0, comma));
        values.remove_prefix(comma == std::string_view::npos ? values.size() : comma + 2);
    }
    return out;
}

std::string number_text(double value) {
    char buffer[32];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

template <typename Number>
const char* number_noun() {
    return std::is_integral_v<Number> ? "a whole number" : "a number";
}

template <typename Number>
bool read_number(std::string_view text, double low, double high, Number& out) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    const double wide = static_cast<double>(value);
    if (!std::isfinite(wide) || wide < low || wide > high) return false;
    out = value;
    return true;
}

template <typename Choice>
bool read_choice(std::string_view text, const std::vector<std::string>& values, Choice& out) {
    for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] == text) {
            out = static_cast<Choice>(i);
            return true;
        }
    }
    return false;
}

bool read_switch(std::string_view text, bool& out) {
    if (text != "0" && text != "1") return false;
    out = text == "1";
    return true;
}

std::string range_text(const char* noun, double low, double high) {
    return std::string(noun) + " from " + number_text(low) + " to " + number_text(high);
}

std::vector<OptionRow> make_rows() {
    std::vector<OptionRow> rows;
    auto choice = [&](const char* key, const char* values, const char* meaning) {
        rows.push_back({key, split_values(values).front(), std::string("one of ") + values, values, meaning});
    };
    auto toggle = [&](const char* key, bool initial, const char* meaning) {
        rows.push_back({key, initial ? "1" : "0", "0 or 1", initial ? "1, 0" : "0, 1", meaning});
    };
    auto number = [&](const char* key, const char* noun, double initial, double low, double high, const char* meaning) {
        rows.push_back({key, number_text(initial), range_text(noun, low, high), number_text(initial), meaning});
    };
    auto size = [&](const char* key, const char* initial, const char* meaning) {
        rows.push_back({key, initial, "bytes as 512, 64K, 100M, 1G", initial, meaning});
    };
    auto text = [&](const char* key, const char* initial, Empty empty, const char* meaning) {
        const char* other = empty == Empty::Required ? "none" : "nothing";
        rows.push_back(
            {key, initial, std::string("a path (without ':') or ") + other, *initial ? initial : "(empty)", meaning});
    };
#define NUMSAN_CHOICE(key, member, type, values, meaning) choice(#key, values, meaning);
#define NUMSAN_SWITCH(key, member, initial, meaning) toggle(#key, initial, meaning);
#define NUMSAN_NUMBER(key, member, type, initial, low, high, meaning) \
    number(#key, number_noun<type>(), initial, low, high, meaning);
#define NUMSAN_SIZE(key, member, initial, low, meaning) size(#key, initial, meaning);
#define NUMSAN_TEXT(key, member, initial, empty, meaning) text(#key, initial, Empty::empty, meaning);
#include "host/options/options.def"
#undef NUMSAN_CHOICE
#undef NUMSAN_SWITCH
#undef NUMSAN_NUMBER
#undef NUMSAN_SIZE
#undef NUMSAN_TEXT
    return rows;
}

bool read_text(std::string_view text, Empty empty, std::string& out) {
    const bool bad = (text.empty() && empty == Empty::Required) || text.find(':') != std::string_view::npos ||
                     text.find('\0') != std::string_view::npos;
    if (!bad) out = text;
    return !bad;
}

bool read_size(std::string_view text, int64_t low, int64_t& out) {
    const int64_t bytes = bytes_of_text(text);
    if (bytes < low) return false;
    out = bytes;
    return true;
}

enum class Outcome { Set, BadValue, UnknownKey };

Outcome assign(Options& options, std::string_view name, std::string_view value) {
    auto outcome = [](bool good) { return good ? Outcome::Set : Outcome::BadValue; };
#define NUMSAN_CHOICE(key, member, type, values, meaning) \
    if (name == #key) return outcome(read_choice(value, split_values(values), options.member));
#define NUMSAN_SWITCH(key, member, initial, meaning) \
    if (name == #key) return outcome(read_switch(value, options.member));
#define NUMSAN_NUMBER(key, member, type, initial, low, high, meaning) \
    if (name == #key) return outcome(read_number<type>(value, low, high, options.member));
#define NUMSAN_SIZE(key, member, initial, low, meaning) \
    if (name == #key) return outcome(read_size(value, low, options.member));
#define NUMSAN_TEXT(key, member, initial, empty, meaning) \
    if (name == #key) return outcome(read_text(value, Empty::empty, options.member));
#include "host/options/options.def"
#undef NUMSAN_CHOICE
#undef NUMSAN_SWITCH
#undef NUMSAN_NUMBER
#undef NUMSAN_SIZE
#undef NUMSAN_TEXT
    return Outcome::UnknownKey;
}

std::vector<std::string> keys() {
    std::vector<std::string> out;
    for (const OptionRow& row : option_rows()) out.push_back(row.key);
    return out;
}

std::string unknown_key(std::string_view key, std::string_view value) {
    std::string known;
    for (const std::string& name : keys()) known += (known.empty() ? "" : ", ") + name;
    return "unknown option '" + shown(key) + "' (value '" + shown(value) + "'): expected one of " + known +
           "; did you mean '" + nearest(key, keys()) + "'?";
}

std::string bad_value(const OptionRow& row, std::string_view value) {
    std::string line = "option '" + row.key + "': bad value '" + shown(value) + "': expected " + row.expected;
    constexpr std::string_view kChoice = "one of ";
    if (row.expected.starts_with(kChoice)) {
        line += "; did you mean '" + nearest(value, split_values(row.expected.substr(kChoice.size()))) + "'?";
    }
    return line;
}

std::string current(const Options& options, std::string_view name) {
#define NUMSAN_CHOICE(key, member, type, values, meaning) \
    if (name == #key) return split_values(values)[static_cast<size_t>(options.member)];
#define NUMSAN_SWITCH(key, member, initial, meaning) \
    if (name == #key) return options.member ? "1" : "0";
#define NUMSAN_NUMBER(key, member, type, initial, low, high, meaning) \
    if (name == #key) return number_text(static_cast<double>(options.member));
#define NUMSAN_SIZE(key, member, initial, low, meaning) \
    if (name == #key) return text_of_bytes(options.member);
#define NUMSAN_TEXT(key, member, initial, empty, meaning) \
    if (name == #key) return options.member;
#include "host/options/options.def"
#undef NUMSAN_CHOICE
#undef NUMSAN_SWITCH
#undef NUMSAN_NUMBER
#undef NUMSAN_SIZE
#undef NUMSAN_TEXT
    return {};
}

constexpr std::string_view kSizes = "KMGT";

}  // namespace

int64_t bytes_of_text(std::string_view text) {
    double unit = 1;
    if (const size_t power = text.empty() ? kSizes.npos : kSizes.find(text.back()); power != kSizes.npos) {
        unit = std::exp2(10.0 * static_cast<double>(power + 1));
        text.remove_suffix(1);
    }
    double value = 0;
    if (!read_number(text, 0.0, std::exp2(62) / unit, value)) return -1;
    return static_cast<int64_t>(value * unit);
}

std::string text_of_bytes(int64_t bytes) {
    size_t power = 0;
    while (bytes != 0 && bytes % 1024 == 0 && power < kSizes.size()) {
        bytes /= 1024;
        ++power;
    }
    return std::to_string(bytes) + (power > 0 ? std::string(1, kSizes[power - 1]) : "");
}

const std::vector<OptionRow>& option_rows() {
    static const std::vector<OptionRow>& rows = *new std::vector<OptionRow>(make_rows());  // usable during exit
    return rows;
}

std::optional<std::string> set_option(Options& options, std::string_view key, std::string_view value) {
    switch (assign(options, key, value)) {
        case Outcome::Set: return std::nullopt;
        case Outcome::UnknownKey: return unknown_key(key, value);
        case Outcome::BadValue: break;
    }
    for (const OptionRow& row : option_rows()) {
        if (row.key == key) return bad_value(row, value);
    }
    return unknown_key(key, value);
}

void parse(std::string_view text, Options& options, std::vector<std::string>& complaints) {
    while (!text.empty()) {
        const size_t end = text.find(':');
        const std::string_view piece = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (piece.empty()) continue;
        const size_t equals = piece.find('=');
        const std::string_view key = piece.substr(0, equals);
        const std::string_view value = equals == std::string_view::npos ? std::string_view() : piece.substr(equals + 1);
        if (auto complaint = set_option(options, key, value)) {
            const std::string kept = current(options, key);
            if (kept.empty()) {
                complaints.push_back(*complaint + "; ignored");
            } else {
                complaints.push_back(*complaint + "; '" + shown(kept) + "' is used");
            }
        }
    }
}

std::map<std::string, std::string> non_default(const Options& options) {
    std::map<std::string, std::string> out;
    for (const OptionRow& row : option_rows()) {
        std::string value = current(options, row.key);
        if (value != row.initial) out.emplace(row.key, std::move(value));
    }
    return out;
}

const char* to_string(Tier tier) {
    switch (tier) {
        case Tier::Auto: return "auto";
        case Tier::Sentinel: return "sentinel";
        case Tier::Boundary: return "boundary";
        case Tier::Full: return "full";
        case Tier::Off: return "off";
    }
    return "auto";
}

std::string expand_path(std::string_view pattern, const PathFacts& facts) {
    std::string out;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%' || i + 1 == pattern.size()) {
            out += pattern[i];
            continue;
        }
        switch (pattern[++i]) {
            case 'p': out += std::to_string(facts.pid); break;
            case 'r': out += std::to_string(facts.rank.value_or(0)); break;
            case 'h':
                for (const char c : facts.host) out += c == '/' ? '_' : c;
                break;
            case 't':
                for (const char c : facts.started) {
                    if (c != '-' && c != ':' && c != '/') out += c;
                }
                break;
            case '%': out += '%'; break;
            default: out += {'%', pattern[i]}; break;
        }
    }
    return out;
}

std::string options_table_markdown() {
    std::string out = "| key | values (default first) | meaning |\n| --- | --- | --- |\n";
    for (const OptionRow& row : option_rows()) {
        out += "| " + row.key + " | " + row.values + " | " + row.meaning + " |\n";
    }
    return out;
}

}  // namespace numsan
