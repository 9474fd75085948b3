// One converter for each format.
#pragma once

#include <memory>

#include "host/format/converter.h"
#include "host/format/formats.h"
#include "host/report/text_layout.h"

namespace numsan {

/// `style` is for text to people.
std::unique_ptr<Converter> make_converter(Format format, const TextStyle& style);

// One a format; make_converter chooses.
std::unique_ptr<Converter> text_converter(const TextStyle& style);
std::unique_ptr<Converter> json_converter();
std::unique_ptr<Converter> html_converter();
std::unique_ptr<Converter> sarif_converter();
std::unique_ptr<Converter> junit_converter();
std::unique_ptr<Converter> markdown_converter();
std::unique_ptr<Converter> open_metrics_converter();
std::unique_ptr<Converter> allow_converter();

}  // namespace numsan
