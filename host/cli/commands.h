// The commands of the numsan executable. Each returns the process's exit status and prints its own errors to stderr.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/format/report_files.h"
#include "host/report/text_layout.h"

namespace numsan::cli {

inline constexpr int kOk = 0;
inline constexpr int kLimited = 1;  ///< doctor: something would not be seen
inline constexpr int kDiffers = 1;  ///< replay: another report, or the dumped op does something else now
inline constexpr int kNews = 1;     ///< diff: a finding appeared or became more severe; diagnose: there is a fault
inline constexpr int kUsage = 2;    ///< wrong usage, unreadable file, cannot work

/// Options given as flags, in order, as key and value.
using OptionFlags = std::vector<std::pair<std::string, std::string>>;

/// Replaces this process by `command` under the library; returns only when that fails.
int run(const OptionFlags& flags, const std::vector<std::string>& command);

/// Shows or converts reports, of files and folders; `output` empty is stdout.
int report(const std::vector<std::string>& files, const std::string& format, const std::string& output,
           const std::string& color);

/// What is new in the reports of `now`, each a file or a folder.
int diff(const std::string& base, const std::string& now, const std::string& format, const std::string& output,
         const std::string& color);

/// Findings over many nights: the reports and the folders of reports in a folder.
int history(const std::string& folder, const std::string& format, const std::string& output, const std::string& color);

/// The reports of a job's ranks, of files and folders, as one.
int merge(const std::vector<std::string>& files, const std::string& format, const std::string& output,
          const std::string& color);

/// Ranked training faults of a report that has signals.
int diagnose(const std::string& file, const std::string& format, const std::string& output, const std::string& color);
int diagnosed_features(const std::string& file, const std::string& output);

int explain(const std::string& word);

/// What `numsan replay` is asked for. All but `path` and `output` are for a dump.
struct ReplayFlags {
    std::string path;    ///< a recording or a dump
    std::string output;  ///< the report of a recording, what is said of a dump; empty writes it nowhere or to stdout
    std::string script;  ///< where a program that reproduces a dump is written; empty writes none
    std::string format = "text";
    bool trials = false;  ///< try each help line
};

/// Makes the report of a recording again, or runs the op of a dump again.
int replay(const ReplayFlags& flags);

/// The second of these: a Python that has torch does it, with the files of host/replay.
int replay_dump(const ReplayFlags& flags);

/// `command` may be empty: python3 is then what would run.
int doctor(const std::vector<std::string>& command);

/// Tables for the documentation: options, categories, mechanisms.
int table(const std::string& name);

/// One line "numsan: ..." on stderr.
void complain(const std::string& line);

/// Says what was not read; true when something of it is an error.
bool complain_of(const ReadReports& read);

/// How text looks in `output`, or on stdout where it is empty.
TextStyle output_style(const std::string& output, const std::string& color);

/// Writes to `output`, or to stdout where it is empty; the exit status.
int write_output(const std::string& output, const std::string& text);

}  // namespace numsan::cli
