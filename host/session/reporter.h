// Keeps the report of this process: adds findings, prints them on the log, writes the file anew each time.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "host/dump/dumps.h"
#include "host/finding/allow_list.h"
#include "host/finding/place_of.h"
#include "host/finding/run_summary.h"
#include "host/log/log.h"
#include "host/options/options.h"
#include "host/report/text_layout.h"
#include "host/session/report_file.h"
#include "host/stacks/open_ranges.h"
#include "host/stacks/process_rank.h"
#include "host/stacks/stack_source.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// [MT] Every member takes the reporter's own lock; none is called with the verdict's lock held.
class Reporter {
  public:
    /// All outlive this.
    Reporter(const Options& options, StackSource& stacks, const OpenRanges& ranges, PlaceFinder places, RunSummary run);

    /// Adds what escaped, less what the allow-list names. `names` is the look-up of what is alive now. `run` holds the
    /// counts so far. Returns the births of which findings were made.
    std::vector<BirthId> add(const Outcome& outcome, const LiveNames& names, const RunSummary& counts,
                             const TensorReader& reader = {});

    /// A report of what is known at the start, for a process that may never come to finish().
    void begin(const RunSummary& counts);
    /// There is nothing to report after all: the file of begin() goes again.
    void withdraw();

    /// What writes files of findings; before the first of them. It outlives this.
    void use(Dumps& dumps) noexcept { dumps_ = &dumps; }
    /// The finding that a birth is reported as; nothing where the allow-list has it, or where there was no room.
    std::optional<Finding> finding_of(BirthId birth) const;
    /// A birth as a finding, as far as it is known while nothing is known of its escape; nothing where the allow-list
    /// has it. `stacks` knows the birth's stacks.
    std::optional<Finding> preview(const Birth& birth, const StackSource& stacks, const LiveNames& names) const;
    /// A finding as it is printed, and as the report has it. What is not known yet is left out.
    std::string text_of(const Finding& finding, bool escape_known) const;
    /// Whether the text of each new finding is on stderr by the time it is published.
    bool prints() const { return options_.log == "stderr"; }
    static std::string document_of(const Finding& finding, bool escape_known);

    /// Whether a further finding would be kept: see the option max_findings.
    bool has_room() const;

    bool knows_rank() const noexcept { return log_rank_.load(std::memory_order_relaxed) >= 0; }
    void use(const ProcessRank& rank);

    /// Last words: the final report and, by verbosity, a summary.
    void finish(const RunSummary& counts);

    /// The report as it would be written now.
    std::string json() const;
    /// What is known of the run so far.
    RunSummary run() const;

    /// The file of the report, as people see it; empty: there is none of this process.
    std::string file_name() const;
    /// Writes what the ranks of the job have left into a file beside the report. Says what went wrong.
    void write_job(const std::string& document) const;

    /// True when a finding of at least this severity was made.
    bool has(Severity severity) const;
    bool empty() const;

    /// One line "numsan: TEXT" on the log, if the option `verbosity` asks for this level. Safe at any time.
    void say(const std::string& text, Level level = Level::Always) const;

    /// What finds the lines of stacks, with the sources that were learned so far.
    PlaceFinder places() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return places_;
    }
    /// Text of lines that lie in no file.
    void learn(const LiveNames::Sources& sources) {
        const std::lock_guard<std::mutex> lock(mutex_);
        places_.learn(sources);
    }

    /// Text of several lines on the log, in its style.
    void show(const std::function<std::string(const TextStyle&)>& text) const { print(text(text_style())); }

    /// A forked child has a report of its own, written only if it has something to say.
    void begin_child();
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    Report in_order_of_birth() const;
    void write();
    int open_log() const;
    void print(const std::string& text) const;
    TextStyle text_style() const;
    void merge_counts(const RunSummary& counts);
    bool suppress(const Finding& finding, BirthId birth);
    void keep_traced(const Birth& birth, const LiveNames& names);
    bool is_milder(size_t index, Severity severity) const;
    bool is_repeated(const EscapedBirth& escaped) const;
    void remember(BirthId birth, size_t index);
    void count_again(size_t index, const EscapedBirth& escaped);
    void know_place(const std::string& place, size_t index);
    void print_unmatched_rules() const;
    /// The first step after which state that a checkpoint has is not finite.
    static int64_t unsafe_since(const Finding& finding) {
        int64_t since = kSafe;
        for (const Contaminated& state : finding.contaminated) {
            if (state.kind != EscapeInto::Gradient) since = std::min(since, state.since_step);
        }
        return since;
    }

    const Options& options_;
    StackSource& stacks_;
    const OpenRanges& ranges_;
    Log log_;
    PlaceFinder places_;  ///< under the lock, as it learns
    AllowList allow_;
    mutable std::mutex mutex_;
    Report report_;
    std::string start_cwd_;
    ReportFile file_;
    std::unordered_map<BirthId, size_t> finding_of_;            ///< birth -> position in report_.findings
    std::unordered_map<std::string, size_t> finding_by_mark_;   ///< place_of_finding() -> position, or kDropped
    LiveNames::Traced traced_;                                  ///< lines of generated code on the stacks of births
    std::unordered_map<std::string, size_t> finding_by_place_;  ///< EscapedBirth::place -> position, or kDropped
    static constexpr size_t kDropped = ~size_t(0);
    static constexpr size_t kMostPlaces = 1 << 14;  ///< of either map; beyond it a place is looked at anew
    int64_t counted_again_ = 0;
    bool finished_ = false;
    int64_t dropped_findings_ = 0;
    Dumps* dumps_ = nullptr;         ///< null: none are wanted
    std::atomic<int> log_rank_{-1};  ///< the rank, which is asked for without the lock; -1: none
    static constexpr int64_t kSafe = INT64_MAX;
    int64_t reported_unsafe_since_ = kSafe;  ///< the step that was printed with a finding; often it is known only later
    bool child_ = false;
};

}  // namespace numsan
