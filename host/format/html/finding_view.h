// What the template of a finding asks for.
#pragma once

#include "host/format/html/page.h"
#include "host/format/known_findings.h"

namespace numsan::html {

/// The `number`th finding of the page, from 1. Everything in it is text but names that end in _html. [MT]
Data finding_view(const KnownFinding& known, size_t number);

/// "error", "warning" or "info": a class of the style sheet, whatever a report says.
std::string severity_class(const std::string& severity);

/// The shape beside a severity: none is known by its colour alone.
std::string severity_mark(const std::string& severity);

}  // namespace numsan::html
