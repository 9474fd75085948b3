// numsan report: shows reports as text, or passes them on as JSON.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "host/cli/commands.h"
#include "host/options/nearest.h"
#include "host/report/atomic_file.h"
#include "host/report/json_fields.h"
#include "host/report/json_reader.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"

namespace numsan::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string as_text(const Json& document, const std::string& path, TextStyle style) {
    style.cwd = fields::text(fields::at(document, "run"), "cwd");
    std::string out;
    for (const Json& finding : fields::list(document, "findings")) out += render_finding(finding, style) + "\n";
    return out + render_summary(document, style, path);
}

std::string as_json(const std::vector<Json>& documents) {
    if (documents.size() == 1) return document_text(documents.front());
    Json list = Json::array();
    for (const Json& document : documents) list.push_back(document);
    return document_text(list);
}

int print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return kOk;
    complain("cannot write to stdout: " + std::generic_category().message(errno));
    return kUsage;
}

ColorOption color_option(const std::string& color) {
    return color == "always" ? ColorOption::Always : color == "never" ? ColorOption::Never : ColorOption::Auto;
}

}  // namespace

int report(const std::vector<std::string>& files, const std::string& format, const std::string& output,
           const std::string& color) {
    if (format != "text" && format != "json") {
        const std::vector<std::string> formats{"text", "json"};
        complain("format '" + format + "' is not in this version: expected text or json; did you mean '" +
                 nearest(format, formats) + "'?");
        return kUsage;
    }
    std::vector<Json> documents;
    for (const std::string& file : files) {
        ReadResult result = read_report(file);
        if (!result.ok()) {
            complain(result.error);
            return kUsage;
        }
        documents.push_back(std::move(result.document));
    }
    TextStyle style;
    if (output.empty()) {
        style = detect_style(STDOUT_FILENO, color_option(color));
    } else {
        style.color = color == "always";
    }
    std::string text;
    if (format == "json") {
        text = as_json(documents);
    } else {
        for (size_t i = 0; i < documents.size(); ++i) text += (i ? "\n" : "") + as_text(documents[i], files[i], style);
    }
    if (output.empty()) return print(text);
    if (const auto error = write_atomically(output, text)) {
        complain(*error);
        return kUsage;
    }
    return kOk;
}

}  // namespace numsan::cli
