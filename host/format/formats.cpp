#include "host/format/formats.h"

#include <algorithm>

#include "host/options/nearest.h"

namespace numsan {
namespace {

bool knows(const FormatInfo& row, std::string_view command) {
    const std::string padded = std::string(" ") + row.commands + " ";
    return padded.find(" " + std::string(command) + " ") != std::string::npos;
}

}  // namespace

std::vector<std::string> formats_of(std::string_view command) {
    std::vector<std::string> names;
    for (const FormatInfo& row : kFormats) {
        if (knows(row, command)) names.emplace_back(row.name);
    }
    return names;
}

std::optional<Format> format_of(std::string_view command, std::string_view name) {
    for (const FormatInfo& row : kFormats) {
        if (name == row.name && knows(row, command)) return row.value;
    }
    return std::nullopt;
}

std::string formats_text(std::string_view command) {
    const std::vector<std::string> names = formats_of(command);
    std::string out;
    for (size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
    return out;
}

std::string unknown_format(std::string_view command, const std::string& name) {
    return "format '" + name + "': expected " + formats_text(command) + "; did you mean '" +
           nearest(name, formats_of(command)) + "'?";
}

}  // namespace numsan
