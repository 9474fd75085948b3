#include "host/ranks/merge_document.h"

#include <nlohmann/json.hpp>

#include "host/format/markdown.h"
#include "host/ranks/merge_words.h"
#include "host/ranks/sighting_document.h"
#include "host/report/finding_words.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"

namespace numsan {
namespace {

using fields::Json;

/// The finding to show in full: of the rank that was first, or, where that has no report, of the first that received.
Sighting shown_of(const JobStory& story) {
    if (!story.own.empty()) return story.own.front().first;
    return story.received.empty() ? Sighting{} : story.received.front().first;
}

std::string shown_text(const JobStory& story, TextStyle style) {
    const Sighting shown = shown_of(story);
    if (shown.report == nullptr) return "";
    const SightingDocument document = document_of(shown, *story.job);
    if (!document.finding) return shown.report->path + " cannot be read any more\n";
    style.cwd = document.cwd;
    return render_finding(*document.finding, style);
}

std::string operation_of(const ReceivedFindings& received, const Job& job) {
    const SightingDocument document = document_of(received.first, job);
    return document.finding ? received_operation_text(*document.finding) : "";
}

std::string code_of(const FindingBrief& brief) { return brief.severity + "[" + brief.code + "]"; }

std::string when_of(const OwnFinding& finding) {
    return "step " + grouped(finding.first.finding->step) + ", " + ranks_words(finding.ranks());
}

std::string other_text(const OwnFinding& finding, const FindingBrief& brief, const TextStyle& style) {
    std::string out = "also: " + inked(code_of(brief), severity_ink(brief.severity), style) + ": " + brief.title + "\n";
    out += "  --> " + brief.place() + (brief.module.empty() ? "" : "  module: " + brief.module) + "\n";
    if (!brief.text.empty()) out += "      " + brief.text + "\n";
    return out + "      " + when_of(finding) + "\n\n";
}

std::string story_text(const JobStory& story, const MergedReports& merged, const TextStyle& style) {
    std::string out;
    const std::string shown = shown_text(story, style);
    if (!shown.empty()) out += inked(first_words(story), Ink::Strong, style) + "\n\n" + shown + "\n";
    if (!story.own.empty() && story.own.front().sightings.size() > 1)
        out += "the same finding: " + ranks_words(story.own.front().ranks()) + "\n\n";
    for (const ReceivedFindings& received : story.received)
        out += received_words(received, operation_of(received, *story.job)) + "\n\n";
    for (size_t i = 1; i < story.own.size(); ++i)
        out += other_text(story.own[i], merged.reports.brief(*story.own[i].first.finding), style);
    const std::string prefix = inked("numsan", Ink::Strong, style) + ": ";
    for (const std::string& remark : rank_remarks(story)) out += prefix + remark + "\n";
    return out + prefix + count_words(story) + "\n";
}

std::string text_document(const MergedReports& merged, const TextStyle& style) {
    const std::string prefix = inked("numsan", Ink::Strong, style) + ": ";
    const size_t count = merged.stories.size();
    std::string out;
    for (size_t i = 0; i < count; ++i) {
        if (count > 1)
            out += inked("run " + std::to_string(i + 1) + " of " + std::to_string(count), Ink::Strong, style) + ": " +
                   job_words(*merged.stories[i].job) + "\n\n";
        out += story_text(merged.stories[i], merged, style) + (i + 1 < count ? "\n" : "");
    }
    for (const std::string& remark : reading_remarks(merged.sorted)) out += prefix + remark + "\n";
    return out;
}

Json brief_document(const OwnFinding& finding, const FindingBrief& brief) {
    Json out = {{"fingerprint", brief.fingerprint},
                {"code", brief.code},
                {"severity", brief.severity},
                {"title", brief.title},
                {"op", brief.op},
                {"phase", brief.phase},
                {"module", brief.module.empty() ? Json(nullptr) : Json(brief.module)}};
    out["place"] =
        brief.file.empty()
            ? Json(nullptr)
            : Json{{"file", brief.file}, {"line", brief.line}, {"function", brief.function}, {"code", brief.text}};
    out["step"] = finding.first.finding->step;
    out["first_rank"] = finding.first.rank;
    out["ranks"] = finding.ranks();
    out["report"] = finding.first.report->path;
    return out;
}

Json received_document(const ReceivedFindings& received, const Job& job) {
    const SightingDocument document = document_of(received.first, job);
    return {{"from", received.is_lost() ? Json(nullptr) : Json(received.origin.rank)},
            {"may_come_from", received.may_come_from},
            {"origin", received.is_lost() ? Json(nullptr) : Json(received.origin.finding->key)},
            {"ranks", received.ranks()},
            {"came_back", received.came_back()},
            {"findings", received.sightings.size()},
            {"first", document.finding ? fields::at(*document.finding, "received") : Json(nullptr)}};
}

Json story_document(const JobStory& story, const MergedReports& merged) {
    const Job& job = *story.job;
    Json out = Json::object();
    out["job"] = job.job.empty() ? Json(nullptr) : Json(job.job);
    out["launcher"] = job.launcher.empty() ? Json(nullptr) : Json(job.launcher);
    out["started"] = job.started.empty() ? Json(nullptr) : Json(job.started);
    out["world_size"] = job.world_size ? Json(*job.world_size) : Json(nullptr);
    out["reports"] = job.reports();
    out["first"] = nullptr;
    if (!story.own.empty()) {
        const Sighting& first = story.own.front().first;
        const SightingDocument document = document_of(first, job);
        out["first"] = {{"rank", first.rank},
                        {"host", first.report->host},
                        {"report", first.report->path},
                        {"finding", document.finding.value_or(Json(nullptr))}};
    }
    out["findings"] = Json::array();
    for (const OwnFinding& finding : story.own)
        out["findings"].push_back(brief_document(finding, merged.reports.brief(*finding.first.finding)));
    out["received"] = Json::array();
    for (const ReceivedFindings& received : story.received) out["received"].push_back(received_document(received, job));
    out["ranks"] = {{"only_received", story.only_received},
                    {"no_finding", story.quiet},
                    {"not_ended", story.not_ended},
                    {"lost_something", story.lossy},
                    {"missing", story.missing},
                    {"missing_may_be_quiet", story.quiet_write_none}};
    out["ranks"]["failed"] = Json::array();
    for (const auto& [status, ranks] : story.failed)
        out["ranks"]["failed"].push_back({{"exit_status", status}, {"ranks", ranks}});
    return out;
}

std::string json_document(const MergedReports& merged) {
    Json out = {{"schema", "numsan.merge/1"}};
    out["runs"] = Json::array();
    for (const JobStory& story : merged.stories) out["runs"].push_back(story_document(story, merged));
    out["told_apart_by"] = merged.sorted.told_apart_by;
    out["without_rank"] = Json::array();
    for (const RankReport* report : merged.sorted.unranked)
        out["without_rank"].push_back({{"report", report->path}, {"findings", report->findings.size()}});
    return document_text(out);
}

std::string story_markdown(const JobStory& story, const MergedReports& merged, size_t room) {
    std::string out;
    if (merged.stories.size() > 1) out += "\n" + markdown::text(job_words(*story.job)) + "\n";
    const std::string shown = shown_text(story, {});
    if (!shown.empty() && shown.size() < room) out += "\n" + markdown::fenced(shown, "text");
    for (const ReceivedFindings& received : story.received)
        out += "\n* " + markdown::text(received_words(received, operation_of(received, *story.job)));
    if (!story.received.empty()) out += "\n";
    size_t left = story.own.size();
    if (left > 1 || (left == 1 && story.own.front().sightings.size() > 1))
        out += "\n| severity | code | what | line | step | ranks |\n| --- | --- | --- | --- | --- | --- |\n";
    else
        left = 0;
    for (const OwnFinding& finding : story.own) {
        if (left == 0) break;
        const FindingBrief& brief = merged.reports.brief(*finding.first.finding);
        const std::string row = "| " + markdown::text(brief.severity) + " | " + markdown::code(brief.code) + " | " +
                                markdown::text(brief.title) + " | " + markdown::code(brief.place()) + " | " +
                                grouped(finding.first.finding->step) + " | " + ranks_words(finding.ranks()) + " |\n";
        if (out.size() + row.size() > room) break;
        out += row;
        --left;
    }
    if (left > 0)
        out += "\nleft out for their length: " +
               counted(static_cast<int64_t>(left), "further finding", "further findings") + "\n";
    for (const std::string& remark : rank_remarks(story)) out += "\n* " + markdown::text(remark);
    return out + "\n* " + markdown::text(count_words(story)) + "\n";
}

std::string markdown_document(const MergedReports& merged) {
    const size_t count = merged.stories.size();
    std::string out;
    for (size_t i = 0; i < count; ++i) {
        const std::string which =
            count > 1 ? "run " + std::to_string(i + 1) + " of " + std::to_string(count) + ": " : "";
        out += (i == 0 ? "### numsan: " : "\n### numsan: ") + which + markdown::text(first_words(merged.stories[i])) +
               "\n";
        out += story_markdown(merged.stories[i], merged, markdown::kMostOfComment / count);
    }
    for (const std::string& remark : reading_remarks(merged.sorted)) out += "\n* " + markdown::text(remark);
    return out + (reading_remarks(merged.sorted).empty() ? "" : "\n");
}

}  // namespace

std::string merge_document(Format format, const MergedReports& merged, const TextStyle& style) {
    if (format == Format::Json) return json_document(merged);
    if (format == Format::Markdown) return markdown_document(merged);
    return text_document(merged, style);
}

}  // namespace numsan
