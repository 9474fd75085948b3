// A report file: refused with a byte, or shown without an exception and written so that it is read back equal. A
// document of any kind is shown, too.
#include <algorithm>
#include <charconv>

#include "host/finding/allow_list.h"
#include "host/format/converters.h"
#include "host/format/html/finding_view.h"
#include "host/ranks/merge_document.h"
#include "host/report/json_fields.h"
#include "host/report/json_reader.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

using fields::Json;

void check_refusal(const std::string& error, size_t bytes) {
    require(one_safe_line(error), "a reason is one safe line", error);
    constexpr std::string_view kStart = "r: byte ";
    require(error.starts_with(kStart), "a reason names file and byte", error);
    size_t byte = 0;
    const auto [end, problem] = std::from_chars(error.data() + kStart.size(), error.data() + error.size(), byte);
    require(problem == std::errc() && *end == ':' && byte <= bytes + 1, "the byte is one of the file's", error);
}

std::string shown(const Json& document, TextStyle style) {
    style.cwd = fields::text(fields::at(document, "run"), "cwd");
    std::string out;
    for (const Json& finding : fields::list(document, "findings")) out += render_finding(finding, style);
    return out + render_finding(document, style) + render_summary(document, style, "r");
}

std::string without_blanks(std::string text) {
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }), text.end());
    return text;
}

std::string without_colors(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b')
            i = std::min(text.find('m', i), text.size());
        else
            out += text[i];
    }
    return out;
}

void check_text(const Json& document) {
    const std::string plain = shown(document, TextStyle{});
    require(plain.ends_with('\n'), "text ends its last line");
    for (const char c : plain) {
        require(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f), "text holds no control character",
                plain);
    }
    require(without_blanks(shown(document, TextStyle{false, 40, ""})) == without_blanks(plain),
            "wrapping loses nothing", plain);
    require(without_colors(shown(document, TextStyle{true, 0, ""})) == plain, "colours change no text", plain);
}

/// Every other document of the report is made, too, and is what its readers take.
void check_formats(const std::string& text, const Json& document) {
    const std::string path = "r";
    for (const FormatInfo& row : kFormats) {
        const auto converter = make_converter(row.value, TextStyle{});
        converter->add({0, path, text, document});
        const std::string made = converter->document();
        require(made.ends_with('\n'), "a document ends its last line", row.name);
        if (row.value == Format::Json || row.value == Format::Sarif) require(Json::accept(made), "it is JSON", made);
        if (row.value == Format::Markdown) require(made.size() <= 65536, "it fits a comment", made);
        if (row.value != Format::Allow) continue;
        std::vector<std::string> complaints;
        AllowList::parse(made, "made", complaints);
        require(complaints.empty(), "suggested rules are rules", made);
    }
}

/// Pages show more of a report than any text does. A script of a report would be a third one.
void check_page(const std::string& text, const Json& document) {
    KnownFindings known;
    const std::string path = "r";
    known.add({0, path, text, document});
    html::List views;
    for (const KnownFinding* finding : known.findings()) views.push_back(html::finding_view(*finding, 1));
    html::Data data;
    data.set("findings", views);
    const std::string page = html::page(html::Body::Report, data);
    size_t scripts = 0;
    for (size_t at = 0; (at = page.find("<script", at)) != std::string::npos; ++at) ++scripts;
    require(scripts == 2, "a page has its own scripts only", page);
}

/// A merge of one report, whose file is gone by the time it is to be shown in full.
void check_merge(const std::string& text, const Json& document) {
    RankReports reports;
    const std::string path = "r";
    reports.add({0, path, text, document});
    const SortedReports sorted = sort_reports(reports.reports());
    MergedReports merged{reports, sorted, {}};
    for (const Job& job : sorted.jobs) merged.stories.push_back(story_of(job));
    for (const Format format : {Format::Text, Format::Json, Format::Markdown}) {
        const std::string made = merge_document(format, merged, TextStyle{});
        if (format == Format::Json) require(Json::accept(made), "it is JSON", made);
        if (format == Format::Markdown) require(made.size() <= 65536, "it fits a comment", made);
    }
}

}  // namespace

void fuzz_report(std::string_view input) {
    const std::string text(input);
    const ReadResult result = parse_report("r", text);
    if (!result.ok()) {
        check_refusal(result.error, text.size());
        const Json any = Json::parse(text, nullptr, false);
        if (!any.is_discarded()) check_text(any);
        return;
    }
    check_text(result.document);
    check_formats(text, parse_report("r", text, Skim::Lists).document);
    check_page(text, result.document);
    check_merge(text, parse_report("r", text, Skim::Values).document);
    const std::string written = document_text(result.document);
    const ReadResult again = parse_report("r", written);
    require(again.ok(), "what is written is accepted", again.error);
    require(again.document == result.document && document_text(again.document) == written, "it is read back equal",
            written);
}

}  // namespace numsan::fuzz
