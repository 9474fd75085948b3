// The section `diagnosis` of a report: signals and faults as a document, and signals back from one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/signals.h"
#include "host/report/text_layout.h"

namespace numsan {

/// The signals; the list of faults is empty. [MT]
nlohmann::ordered_json diagnosis_document(const Signals& signals);

/// What was measured, read back; what is missing or of another type is not measured. Nothing where `section` is no such
/// section. Never throws for any document. [MT]
std::optional<Signals> read_signals(const nlohmann::ordered_json& section);

/// The faults as a document. [MT]
nlohmann::ordered_json faults_document(const std::vector<Fault>& faults);

/// Faults and what speaks for each, for people; a sentence where there is none. Lines end with a newline. [MT]
std::string render_diagnosis(const Signals& signals, const std::vector<Fault>& faults, const TextStyle& style);

}  // namespace numsan
