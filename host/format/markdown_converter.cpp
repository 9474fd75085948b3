// GitHub's markdown for a comment: a table of the findings, then each as text, as far as there is room.
#include "host/format/converters.h"
#include "host/format/known_converter.h"
#include "host/format/markdown.h"
#include "host/report/text.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;

constexpr size_t kMostOfTable = 24000;  ///< of them for the table

std::string count_of(size_t count, const char* singular, const char* plural) {
    return counted(static_cast<int64_t>(count), singular, plural);
}

std::string table_row(const KnownFinding& known) {
    const Json& finding = known.document;
    const std::string place = shown_place(at(finding, "location"), known.cwd);
    const std::string ranks = ranks_text(known.ranks);
    return "| " + markdown::text(known.severity) + " | " + markdown::code(fields::text(finding, "code")) + " | " +
           markdown::text(title_of_any_run(finding)) + " | " + markdown::code(place) + " | " +
           markdown::code(fields::text(finding, "module")) + " | " + digits(known.first_step) + " | " +
           (ranks.empty() ? std::to_string(known.reports) : ranks) + " |\n";
}

std::string details_of(const KnownFinding& known) {
    TextStyle style;
    style.cwd = known.cwd;
    const std::string place = shown_place(at(known.document, "location"), known.cwd);
    return "\n<details><summary>" + markdown::in_html(fields::text(known.document, "code")) +
           (place.empty() ? "" : " at " + markdown::in_html(place)) + "</summary>\n\n" +
           markdown::fenced(render_finding(known.document, style), "text") + "\n</details>\n";
}

class MarkdownConverter : public KnownConverter {
  public:
    std::string document() override {
        const std::vector<const KnownFinding*> findings = known().findings();
        std::string out = "### numsan: " + heading(findings.size()) + "\n";
        if (!findings.empty()) {
            out +=
                "\n| severity | code | what | line | module | step | reports |\n"
                "| --- | --- | --- | --- | --- | --- | --- |\n";
        }
        size_t rows = 0;
        for (const KnownFinding* finding : findings) {
            const std::string row = table_row(*finding);
            if (out.size() + row.size() > kMostOfTable) break;
            out += row;
            ++rows;
        }
        size_t shown = 0;
        for (const KnownFinding* finding : findings) {
            const std::string details = details_of(*finding);
            if (shown == rows || out.size() + details.size() > markdown::kMostOfComment) break;
            out += details;
            ++shown;
        }
        return out + ending(findings.size() - rows, rows - shown);
    }

  private:
    std::string heading(size_t findings) const {
        const std::string what = findings == 0 ? "no finding" : count_of(findings, "finding", "findings");
        const std::string reports = count_of(known().runs().size(), "report", "reports");
        const size_t incomplete = known().incomplete_runs();
        return what + " in " + reports +
               (incomplete == 0
                    ? ""
                    : "; " + std::to_string(incomplete) + " incomplete, where silence does not mean health");
    }

    static std::string ending(size_t without_row, size_t without_text) {
        std::string out;
        if (without_row > 0) {
            out +=
                "\nleft out for their length: " + count_of(without_row, "further finding", "further findings") + "\n";
        }
        if (without_text > 0) {
            out += "\nleft out for their length: the text of " + count_of(without_text, "finding", "findings") +
                   " of the table\n";
        }
        return out.empty() ? out : out + "\n`numsan report` shows all\n";
    }
};

}  // namespace

std::unique_ptr<Converter> markdown_converter() { return std::make_unique<MarkdownConverter>(); }

}  // namespace numsan
