// Reports as text for people: one renderer for the running program and for `numsan report`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "host/finding/run_summary.h"
#include "host/report/text_layout.h"

namespace numsan {

/// One finding, several lines, with a newline at the end. Figures are never truncated; control characters are shown as
/// '?'. Missing or mistyped fields of a foreign document are left out. Never throws for any document. [MT]
std::string render_finding(const nlohmann::ordered_json& finding, const TextStyle& style);
std::string render_finding(const Finding& finding, const TextStyle& style);
/// A birth of which it is not known yet what becomes of it. [MT]
std::string render_birth(const Finding& finding, const TextStyle& style);

/// The advice of a finding whose state is not finite since a step, for one that was printed before that was known. [MT]
std::string render_checkpoint_help(int64_t since_step, const TextStyle& style);

/// What makes the run slow, under a heading; empty where nothing was found. [MT]
std::string render_performance(const nlohmann::ordered_json& report, const TextStyle& style);
std::string render_performance(const Report& report, const TextStyle& style);

/// The lines at the end, each beginning with "numsan: ". `report_path` empty: no line about the report file. [MT]
std::string render_summary(const nlohmann::ordered_json& report, const TextStyle& style,
                           const std::string& report_path = "");
std::string render_summary(const Report& report, const TextStyle& style, const std::string& report_path = "");

}  // namespace numsan
