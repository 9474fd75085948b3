// Many report files: found in folders, read on several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "host/report/json_reader.h"

namespace numsan {

/// A report as it was read. All references end with the call that they are handed to.
struct SourceReport {
    size_t number;            ///< in the order of the files, from 0
    const std::string& path;  ///< as it was given, or the folder's path and the name in it
    const std::string& text;
    const nlohmann::ordered_json& document;
};

/// Takes up reports on one thread, in rising but not adjacent order.
class ReportSink {
  public:
    ReportSink() = default;
    ReportSink(const ReportSink&) = delete;
    ReportSink& operator=(const ReportSink&) = delete;
    virtual ~ReportSink() = default;

    virtual void add(const SourceReport& report) = 0;

    /// What it does not ask for.
    virtual Skim skim() const { return Skim::Lists; }

    /// Takes up what another of the same type has.
    virtual void absorb(ReportSink& other) = 0;
};

/// What became of the files; one line each, in their order.
struct ReadReports {
    size_t reports = 0;
    std::vector<std::string> errors;   ///< files, byte and reason
    std::vector<std::string> skipped;  ///< files of a folder that are no reports
};

/// Less, with digits as numbers: "rank-2" before "rank-10". [MT]
bool name_before(std::string_view a, std::string_view b);

/// The names of all *.json of a folder, in that order; what went wrong in `error`. [MT]
std::vector<std::string> reports_in(const std::string& folder, std::string& error);

using MakeSink = std::function<std::unique_ptr<ReportSink>()>;

/// Reads reports into sinks: `given` are files and folders, of which all *.json are read, in the order of their names
/// (numbers by value). One sink is made for each thread; the first has absorbed the others when it is handed back in
/// `sink`. A file that was given and is no report is an error; so is a damaged one, an empty one, and a folder without
/// reports. A *.json of a folder that has no mark of a report is skipped. Never throws for any content.
ReadReports read_reports(const std::vector<std::string>& given, const MakeSink& make,
                         std::unique_ptr<ReportSink>& sink);

}  // namespace numsan
