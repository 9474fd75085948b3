// Reports as text for people: one renderer for the running program and for `numsan report`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "host/analyze/run_summary.h"
#include "host/options/options.h"

namespace numsan {

/// How text looks. `width` is in columns, 0 = never wrap. File names below `cwd` are shown relative to it.
struct TextStyle {
    bool color = false;
    int width = 0;
    std::string cwd;
};

/// Colour and width for a file descriptor: colour by `color`, and for Auto only on a terminal that can, without
/// NO_COLOR.
TextStyle detect_style(int fd, ColorOption color);

/// One finding, several lines, with a newline at the end. Figures are never truncated; control characters are shown as
/// '?'. Missing or mistyped fields of a foreign document are left out. Never throws for any document. [MT]
std::string render_finding(const nlohmann::ordered_json& finding, const TextStyle& style);
std::string render_finding(const Finding& finding, const TextStyle& style);

/// The advice of a finding whose state is not finite since a step, for one that was told before that was known. [MT]
std::string render_checkpoint_help(int64_t since_step, const TextStyle& style);

/// The lines at the end, each beginning with "numsan: ". `report_path` empty: no line about the report file. [MT]
std::string render_summary(const nlohmann::ordered_json& report, const TextStyle& style,
                           const std::string& report_path = "");
std::string render_summary(const Report& report, const TextStyle& style, const std::string& report_path = "");

/// 91234 -> "91 234". As wide as every integer of a document, signed and unsigned. [MT]
std::string grouped(__int128 count);

/// A value for people: "0", "0.5", "2.4e-04", "812.5". [MT]
std::string value_text(double value);

}  // namespace numsan
