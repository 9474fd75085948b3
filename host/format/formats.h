// The formats by name, generated from formats.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {

enum class Format {
#define NUMSAN_FORMAT(value, name, commands, description) value,
#include "host/format/formats.def"
#undef NUMSAN_FORMAT
};

/// A row of formats.def. Literals: valid for ever.
struct FormatInfo {
    Format value;
    const char* name;
    const char* commands;  ///< names with blanks between them
    const char* description;
};

inline constexpr FormatInfo kFormats[] = {
#define NUMSAN_FORMAT(value, name, commands, description) {Format::value, name, commands, description},
#include "host/format/formats.def"
#undef NUMSAN_FORMAT
};

/// Names of the formats that a command ("report") knows, in the order of the table. [MT]
std::vector<std::string> formats_of(std::string_view command);

/// None when the command knows no such format. [MT]
std::optional<Format> format_of(std::string_view command, std::string_view name);

/// "format 'html': expected text, json or ...; did you mean '...'?" [MT]
std::string unknown_format(std::string_view command, const std::string& name);

/// "text, json or markdown". [MT]
std::string formats_text(std::string_view command);

}  // namespace numsan
