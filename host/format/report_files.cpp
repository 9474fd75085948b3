#include "host/format/report_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "host/report/json_reader.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;

struct File {
    std::string path;
    bool of_folder;
};

/// What became of one file. Threads write different ones.
struct Outcome {
    bool report = false;
    std::string error;
    std::string skipped;
};

class Reading {
  public:
    explicit Reading(const std::vector<File>& files) : files_(files), outcomes_(files.size()) {}

    void work(ReportSink& sink) {
        for (size_t i = next_++; i < files_.size(); i = next_++) take(i, sink);
    }

    const std::vector<Outcome>& outcomes() const { return outcomes_; }

  private:
    void take(size_t i, ReportSink& sink) {
        const File& file = files_[i];
        Outcome& outcome = outcomes_[i];
        try {
            std::string text;
            const ReadResult result = read_report(file.path, &text, sink.skim());
            if (!result.ok()) {
                (file.of_folder && result.foreign ? outcome.skipped : outcome.error) = result.error;
                return;
            }
            sink.add({i, file.path, text, result.document});
            outcome.report = true;
        } catch (const std::exception& problem) {  // no memory
            outcome.error = file.path + ": " + problem.what();
        }
    }

    const std::vector<File>& files_;
    std::vector<Outcome> outcomes_;
    std::atomic<size_t> next_{0};
};

/// The reading takes most of the time; the rest of a machine belongs to others.
size_t threads_for(size_t files) {
    constexpr size_t kMost = 8;
    return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::clamp<size_t>(files, 1, kMost));
}

}  // namespace

bool name_before(std::string_view a, std::string_view b) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    size_t i = 0;
    size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (!is_digit(a[i]) || !is_digit(b[j])) {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i, ++j;
            continue;
        }
        while (i < a.size() && a[i] == '0') ++i;
        while (j < b.size() && b[j] == '0') ++j;
        size_t m = i;
        size_t n = j;
        while (m < a.size() && is_digit(a[m])) ++m;
        while (n < b.size() && is_digit(b[n])) ++n;
        if (m - i != n - j) return m - i < n - j;
        const int order = a.substr(i, m - i).compare(b.substr(j, n - j));
        if (order != 0) return order < 0;
        i = m;
        j = n;
    }
    if ((i < a.size()) != (j < b.size())) return j < b.size();
    return a < b;  // equal but for zeros in front
}

std::vector<std::string> reports_in(const std::string& folder, std::string& error) {
    std::vector<std::string> names;
    std::error_code code;
    for (auto entry = fs::directory_iterator(folder, code); !code && entry != fs::directory_iterator();
         entry.increment(code)) {
        std::error_code unknown;
        const std::string name = entry->path().filename().string();
        if (name.ends_with(".json") && entry->is_regular_file(unknown)) names.push_back(name);
    }
    if (code) error = folder + ": cannot be read: " + code.message();
    std::sort(names.begin(), names.end(), name_before);
    return names;
}

ReadReports read_reports(const std::vector<std::string>& given, const MakeSink& make,
                         std::unique_ptr<ReportSink>& sink) {
    ReadReports read;
    std::vector<File> files;
    std::set<std::string> seen;  // a file that is named twice is read once
    for (const std::string& path : given) {
        std::error_code code;
        if (!fs::is_directory(path, code)) {
            if (seen.insert(path).second) files.push_back({path, false});
            continue;
        }
        std::string error;
        const std::vector<std::string> names = reports_in(path, error);
        const std::string slash = path.ends_with('/') ? "" : "/";
        if (error.empty() && names.empty()) error = path + ": there is no report (*.json) in this folder";
        if (!error.empty()) read.errors.push_back(error);
        for (const std::string& name : names) {
            std::string full = path;
            full.append(slash).append(name);
            if (seen.insert(full).second) files.push_back({std::move(full), true});
        }
    }
    Reading reading(files);
    std::vector<std::unique_ptr<ReportSink>> sinks(threads_for(files.size()));
    for (auto& one : sinks) one = make();
    {
        std::vector<std::jthread> others;
        for (size_t i = 1; i < sinks.size(); ++i) others.emplace_back([&, i] { reading.work(*sinks[i]); });
        reading.work(*sinks[0]);
    }
    for (size_t i = 1; i < sinks.size(); ++i) sinks[0]->absorb(*sinks[i]);
    sink = std::move(sinks[0]);
    for (const Outcome& outcome : reading.outcomes()) {
        if (outcome.report) ++read.reports;
        if (!outcome.error.empty()) read.errors.push_back(outcome.error);
        if (!outcome.skipped.empty()) read.skipped.push_back(outcome.skipped);
    }
    if (read.reports == 0 && read.errors.empty()) {
        read.errors.push_back((given.empty() ? std::string("nothing") : given.front()) + ": there is no report in it");
    }
    return read;
}

}  // namespace numsan
