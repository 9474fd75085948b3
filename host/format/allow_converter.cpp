// Lines for an allow-list, one a finding: as narrow as the finding allows.
#include <algorithm>

#include "host/finding/mechanisms.h"
#include "host/format/converters.h"
#include "host/format/known_converter.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

/// Blanks end a field of a rule; a star stands for any character.
std::string value_of(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) <= ' ') c = '*';
    }
    return text;
}

/// The words as the report has them: `clean` would replace characters that must match.
std::string raw(const Json& object, const char* key) {
    const Json& value = at(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
}

std::string field(const char* name, const std::string& value) {
    return value.empty() ? "" : std::string(" ") + name + ":" + value_of(value);
}

/// One that an allow-list of this version takes.
bool known_code(const std::string& code) {
    return std::any_of(std::begin(kMechanisms), std::end(kMechanisms),
                       [&](const MechanismInfo& row) { return code == row.code; });
}

std::string rule_of(const KnownFinding& known) {
    const Json& finding = known.document;
    const std::string code = fields::text(finding, "code");
    const Json& place = at(finding, "location");
    std::string file = below(raw(place, "file"), known.cwd);
    const auto line = fields::number(place, "line");
    // a path is followed by its line, else a ':' in it would be taken for one
    if (!file.empty() && line > 0) file += ":" + digits(line);
    const bool placed = !file.empty() && (line > 0 || file.find(':') == std::string::npos);
    std::string rule = field("op", raw(finding, "op"));
    if (known_code(code)) rule += field("code", code);
    rule += placed ? field("file", file) : field("module", raw(finding, "module"));
    if (!placed && !rule.empty()) rule += "  # no line is known: this may match more";
    return rule.empty() ? rule : rule.substr(1);
}

class AllowConverter : public KnownConverter {
  public:
    std::string document() override {
        std::string out = "# suggested by `numsan report --format allow`: keep what is meant to be, with a reason\n";
        for (const KnownFinding* finding : known().findings()) {
            const std::string rule = rule_of(*finding);
            if (rule.empty()) continue;
            out += "# " + title_of_any_run(finding->document) + "\n" + rule + "\n";
        }
        return out;
    }
};

}  // namespace

std::unique_ptr<Converter> allow_converter() { return std::make_unique<AllowConverter>(); }

}  // namespace numsan
