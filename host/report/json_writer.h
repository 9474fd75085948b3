// Reports as JSON documents that are valid against report.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "host/finding/run_summary.h"

namespace numsan {

inline constexpr char kSchemaMarker[] = "numsan.report/1";

/// The whole report as text, one space of indent, a newline at the end. Bytes that are not UTF-8 become U+FFFD. [MT]
std::string to_json(const Report& report);

/// The same as documents, for the text renderer. [MT]
nlohmann::ordered_json report_document(const Report& report);
nlohmann::ordered_json finding_document(const Finding& finding);
/// In the place of a severity, of a birth that the program stopped at before it is known what becomes of it: what
/// depends on that is left out.
inline constexpr char kStopped[] = "stopped";
nlohmann::ordered_json birth_document(const Finding& finding);
nlohmann::ordered_json performance_document(const SlowRun& run);
nlohmann::ordered_json tensors_document(const std::vector<TensorFact>& tensors);
/// Null where there is none.
nlohmann::ordered_json place_document(const std::optional<Place>& place);

/// A document as text, as to_json writes it. Never throws for invalid UTF-8. [MT]
std::string document_text(const nlohmann::ordered_json& document);
/// The same of one finding. [MT]
std::string finding_json(const Finding& finding);
std::string birth_json(const Finding& finding);

}  // namespace numsan
