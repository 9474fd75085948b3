#include "host/changes/finding_history.h"

#include <algorithm>
#include <filesystem>

#include "host/base/value_classes.h"
#include "host/changes/finding_changes.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;

using fields::Json;
using fields::list;

/// Keeps the reports of a folder apart.
class SeparateReports : public ReportSink {
  public:
    void add(const SourceReport& report) override {
        Night& night = nights_[report.number];
        night.path = report.path;
        night.known = std::make_unique<KnownFindings>();
        night.known->add(report);
    }
    void absorb(ReportSink& other) override { nights_.merge(dynamic_cast<SeparateReports&>(other).nights_); }

    std::map<size_t, Night>& nights() { return nights_; }

  private:
    std::map<size_t, Night> nights_;
};

std::string start_of(const KnownFindings& known) {
    std::string first;
    for (const auto& [number, run] : known.runs()) {
        const std::string started = fields::text(run.run, "started");
        if (!started.empty() && (first.empty() || started < first)) first = started;
    }
    return first;
}

void append(ReadReports& all, const ReadReports& more) {
    all.reports += more.reports;
    all.errors.insert(all.errors.end(), more.errors.begin(), more.errors.end());
    all.skipped.insert(all.skipped.end(), more.skipped.begin(), more.skipped.end());
}

}  // namespace

Nights read_nights(const std::string& folder) {
    Nights made;
    std::error_code code;
    std::vector<std::string> folders;
    for (auto entry = fs::directory_iterator(folder, code); !code && entry != fs::directory_iterator();
         entry.increment(code)) {
        std::error_code unknown;
        if (entry->is_directory(unknown)) folders.push_back(entry->path().string());
    }
    if (code) {
        made.read.errors.push_back(folder + ": cannot be read: " + code.message());
        return made;
    }
    std::sort(folders.begin(), folders.end(), name_before);
    std::erase_if(folders, [&](const std::string& path) {
        std::string error;
        const bool empty = reports_in(path, error).empty() && error.empty();
        if (empty) made.read.skipped.push_back(path + ": there is no report (*.json) in this folder");
        return empty;
    });
    std::string error;
    if (!reports_in(folder, error).empty() || folders.empty()) {
        std::unique_ptr<ReportSink> sink;
        append(made.read, read_reports(
                              {folder}, [] { return std::make_unique<SeparateReports>(); }, sink));
        for (auto& [number, night] : dynamic_cast<SeparateReports&>(*sink).nights())
            made.nights.push_back(std::move(night));
    }
    for (const std::string& path : folders) {
        std::unique_ptr<ReportSink> sink;
        append(made.read, read_reports(
                              {path}, [] { return std::make_unique<KnownFindings>(); }, sink));
        made.nights.push_back({path, "", std::unique_ptr<KnownFindings>(dynamic_cast<KnownFindings*>(sink.release()))});
    }
    for (Night& night : made.nights) night.started = start_of(*night.known);
    std::stable_sort(made.nights.begin(), made.nights.end(),
                     [](const Night& a, const Night& b) { return a.started < b.started; });
    return made;
}

std::optional<Headroom> headroom_of(const KnownFinding& finding) {
    std::optional<Headroom> most;
    for (const Json& tensor : list(finding.document, "outputs")) {
        const auto absmax = fields::real(tensor, "absmax");
        if (!absmax || !(*absmax > 0)) continue;
        const std::optional<DType> type = dtype_of(fields::text(tensor, "dtype"));
        if (!type) continue;
        const Headroom one{*absmax, info(*type).name, largest_value(*type)};
        if (!most || one.absmax / one.largest > most->absmax / most->largest) most = one;
    }
    return most;
}

size_t FindingHistory::first() const {
    return static_cast<size_t>(std::find_if(nights.begin(), nights.end(), [](const auto* one) { return one; }) -
                               nights.begin());
}

size_t FindingHistory::last() const {
    const auto found = std::find_if(nights.rbegin(), nights.rend(), [](const auto* one) { return one; });
    return static_cast<size_t>(nights.rend() - found) - 1;
}

size_t FindingHistory::sightings() const {
    return static_cast<size_t>(std::count_if(nights.begin(), nights.end(), [](const auto* one) { return one; }));
}

HistoryState state_of(const FindingHistory& history) {
    const size_t now = history.nights.size() - 1;
    if (history.last() != now) return HistoryState::Gone;
    if (history.first() == now) return now == 0 ? HistoryState::Present : HistoryState::Appeared;
    return history.nights[now - 1] == nullptr ? HistoryState::Returned : HistoryState::Present;
}

const char* to_string(HistoryState state) {
    switch (state) {
        case HistoryState::Appeared: return "new";
        case HistoryState::Returned: return "back";
        case HistoryState::Present: return "present";
        case HistoryState::Gone: return "gone";
    }
    return "";
}

std::vector<FindingHistory> finding_histories(const std::vector<Night>& nights) {
    std::vector<FindingHistory> histories;
    std::map<const KnownFinding*, size_t> by_last;  // the last sighting -> its history
    for (size_t night = 0; night < nights.size(); ++night) {
        std::vector<const KnownFinding*> before;
        before.reserve(histories.size());
        for (const FindingHistory& history : histories) before.push_back(&history.latest());
        for (const ChangedFinding& one : finding_changes(std::move(before), nights[night].known->findings())) {
            if (one.now == nullptr) continue;
            size_t which = histories.size();
            if (one.before != nullptr) {
                which = by_last.at(one.before);
                by_last.erase(one.before);
            } else {
                histories.push_back({std::vector<const KnownFinding*>(nights.size(), nullptr)});
            }
            histories[which].nights[night] = one.now;
            by_last.emplace(one.now, which);
        }
    }
    std::stable_sort(histories.begin(), histories.end(), [](const FindingHistory& a, const FindingHistory& b) {
        if (a.last() != b.last()) return a.last() > b.last();
        const int severity_a = severity_rank(a.latest().severity);
        const int severity_b = severity_rank(b.latest().severity);
        return severity_a != severity_b ? severity_a > severity_b : a.latest().place < b.latest().place;
    });
    return histories;
}

}  // namespace numsan
