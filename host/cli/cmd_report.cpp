// numsan report: shows reports as text, or makes another document of them.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "host/cli/commands.h"
#include "host/format/converters.h"
#include "host/format/formats.h"
#include "host/report/atomic_file.h"

namespace numsan::cli {
namespace {

int print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return kOk;
    complain("cannot write to stdout: " + std::generic_category().message(errno));
    return kUsage;
}

ColorOption color_option(const std::string& color) {
    return color == "always" ? ColorOption::Always : color == "never" ? ColorOption::Never : ColorOption::Auto;
}

}  // namespace

TextStyle output_style(const std::string& output, const std::string& color) {
    if (output.empty()) return detect_style(STDOUT_FILENO, color_option(color));
    TextStyle style;
    style.color = color == "always";
    return style;
}

int write_output(const std::string& output, const std::string& text) {
    if (output.empty()) return print(text);
    if (const auto error = write_atomically(output, text)) {
        complain(*error);
        return kUsage;
    }
    return kOk;
}

bool complain_of(const ReadReports& read) {
    constexpr size_t kMostLines = 20;
    const auto say = [](const std::vector<std::string>& lines, const std::string& what) {
        for (size_t i = 0; i < lines.size() && i < kMostLines; ++i)
            complain((what.empty() ? "" : what + " ") + lines[i]);
        if (lines.size() > kMostLines) {
            complain(std::to_string(lines.size() - kMostLines) + " further files likewise");
        }
    };
    say(read.skipped, "skipped");
    say(read.errors, "");
    return !read.errors.empty();
}

int report(const std::vector<std::string>& files, const std::string& format, const std::string& output,
           const std::string& color) {
    const auto known = format_of("report", format);
    if (!known) {
        complain(unknown_format("report", format));
        return kUsage;
    }
    const TextStyle style = output_style(output, color);
    std::unique_ptr<ReportSink> sink;
    const ReadReports read = read_reports(
        files, [&] { return make_converter(*known, style); }, sink);
    if (complain_of(read)) return kUsage;
    return write_output(output, dynamic_cast<Converter&>(*sink).document());
}

}  // namespace numsan::cli
