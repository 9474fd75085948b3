// NUMSAN_OPTIONS as typed fields, and the table of them that the launcher and the documentation are made from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {

// Enumerators are in the order of the accepted values in options.def.
enum class Tier : uint8_t { Auto, Sentinel, Boundary, Full, Off };
enum class ColorOption : uint8_t { Auto, Always, Never };
enum class ReportWhen : uint8_t { Auto, Always, Finding };
enum class FailOn : uint8_t { None, Warning, Error };
enum class Cupti : uint8_t { Auto, On, Off };
enum class EscapeOption : uint8_t { Matters, Any };

/// "512", "64K", "1.5G" as bytes, K, M, G and T being powers of 1024; -1 for anything else, and for what is too large.
int64_t bytes_of_text(std::string_view text);
/// Back again: "1G".
std::string text_of_bytes(int64_t bytes);

/// The options in force. Fields start as their defaults; meanings and units are in options.def.
struct Options {
#define NUMSAN_CHOICE(key, member, type, values, meaning) type member{};
#define NUMSAN_SWITCH(key, member, initial, meaning) bool member = initial;
#define NUMSAN_NUMBER(key, member, type, initial, low, high, meaning) type member = initial;
#define NUMSAN_SIZE(key, member, initial, low, meaning) int64_t member = bytes_of_text(initial);
#define NUMSAN_TEXT(key, member, initial, empty, meaning) std::string member = initial;
#include "host/options/options.def"
#undef NUMSAN_CHOICE
#undef NUMSAN_SWITCH
#undef NUMSAN_NUMBER
#undef NUMSAN_SIZE
#undef NUMSAN_TEXT
};

/// One row of the table, as text.
struct OptionRow {
    std::string key;
    std::string initial;   ///< the default
    std::string expected;  ///< "one of auto, always, never", "a number from 0 to 100", ...
    std::string values;    ///< the default first, then the other accepted values if they can be listed
    std::string meaning;
};

const std::vector<OptionRow>& option_rows();

/// Reads `key=value:key=value` into `options`; the last of equal keys wins, empty pieces are nothing. A value, a path
/// included, cannot hold a ':'. What is unknown or bad leaves its field alone and adds one line to `complaints`. Never
/// throws for any text. [MT]
void parse(std::string_view text, Options& options, std::vector<std::string>& complaints);

/// Sets one option. Returns what is wrong (one line: key, value, what was expected, the nearest), or nothing. [MT]
std::optional<std::string> set_option(Options& options, std::string_view key, std::string_view value);

/// The options that differ from their defaults, as `key -> value`. [MT]
std::map<std::string, std::string> non_default(const Options& options);

const char* to_string(Tier tier);

/// What the escapes of a path stand for.
struct PathFacts {
    int64_t pid = 0;
    std::optional<int> rank;  ///< none counts as 0
    std::string host;
    std::string started;  ///< RFC 3339, UTC; put into paths without '-' and ':'
};

/// Replaces %p, %r, %h, %t and %%; any other % stays as it is. A '/' in the host name becomes '_'. [MT]
std::string expand_path(std::string_view pattern, const PathFacts& facts);

/// The options that have an effect as GitHub markdown, for the documentation.
std::string options_table_markdown();

}  // namespace numsan
