#include "host/format/converters.h"

namespace numsan {

std::unique_ptr<Converter> make_converter(Format format, const TextStyle& style) {
    switch (format) {
        case Format::Text: return text_converter(style);
        case Format::Json: return json_converter();
        case Format::Html: return html_converter();
        case Format::Sarif: return sarif_converter();
        case Format::Junit: return junit_converter();
        case Format::Markdown: return markdown_converter();
        case Format::OpenMetrics: return open_metrics_converter();
        case Format::Allow: return allow_converter();
    }
    return nullptr;
}

}  // namespace numsan
