// The converters that pass reports on as they are, and the choice of one.
#include "host/format/converters.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "host/diagnosis/diagnosis_document.h"
#include "host/diagnosis/ranking.h"
#include "host/format/parts.h"
#include "host/report/json_fields.h"
#include "host/report/text.h"

namespace numsan {
namespace {

using fields::Json;

class TextConverter : public PartsConverter<std::string> {
  public:
    explicit TextConverter(TextStyle style) : style_(std::move(style)) {}

    std::string document() override {
        std::string out;
        for (const auto& [number, text] : parts()) out += (out.empty() ? "" : "\n") + text;
        return out;
    }

  protected:
    std::string part_of(const SourceReport& report) const override {
        TextStyle style = style_;
        style.cwd = fields::text(fields::at(report.document, "run"), "cwd");
        std::string out;
        for (const Json& finding : fields::list(report.document, "findings")) {
            out += render_finding(finding, style) + "\n";
        }
        if (const std::string slow = render_performance(report.document, style); !slow.empty()) out += slow + "\n";
        if (const std::string faults = training_faults(report.document, style); !faults.empty()) out += faults + "\n";
        return out + render_summary(report.document, style, report.path);
    }

  private:
    /// As the run has printed them; empty where it had none.
    static std::string training_faults(const Json& document, const TextStyle& style) {
        const Json& section = fields::at(document, "diagnosis");
        const std::optional<Signals> signals = read_signals(section);
        if (!signals) return "";
        std::string warnings = render_early_warnings(signals->warnings, style);
        if (fields::list(section, "faults").empty()) return warnings;
        return warnings + render_diagnosis(*signals, rank_faults(*signals), style);
    }

    TextStyle style_;
};

/// What was read is passed on byte for byte, less the byte order mark and the blanks around it.
class JsonConverter : public PartsConverter<std::string> {
  public:
    std::string document() override {
        if (parts().size() == 1) return parts().begin()->second + "\n";
        size_t size = 16;
        for (const auto& [number, text] : parts()) size += text.size() + 2;
        std::string out;
        out.reserve(size);
        out += "[";
        for (auto& [number, text] : parts()) {
            out += out.size() == 1 ? "\n" : ",\n";
            out += text;
            text = std::string();
        }
        return out += "\n]\n";
    }

  protected:
    std::string part_of(const SourceReport& report) const override {
        constexpr std::string_view kBlanks = " \t\r\n";
        std::string_view text = report.text;
        if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
        text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
        return std::string(text.substr(0, text.find_last_not_of(kBlanks) + 1));
    }
};

}  // namespace

std::unique_ptr<Converter> text_converter(const TextStyle& style) { return std::make_unique<TextConverter>(style); }

std::unique_ptr<Converter> json_converter() { return std::make_unique<JsonConverter>(); }

}  // namespace numsan
