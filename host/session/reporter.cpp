#include "host/session/reporter.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "host/process/process_identity.h"
#include "host/process/run_facts.h"
#include "host/report/atomic_file.h"
#include "host/report/json_writer.h"
#include "host/report/text.h"
#include "host/session/finding_builder.h"

namespace numsan {
namespace {

std::string absolute(const std::string& path, const std::string& cwd) {
    return path.empty() || path[0] == '/' || cwd.empty() ? path : cwd + "/" + path;
}

}  // namespace

Reporter::Reporter(const Options& options, StackSource& stacks, const OpenRanges& ranges, PlaceFinder places,
                   RunSummary run)
    : options_(options),
      stacks_(stacks),
      ranges_(ranges),
      log_([this] { return open_log(); }),
      places_(std::move(places)),
      start_cwd_(run.cwd),
      file_(options, run.cwd) {
    report_.run = std::move(run);
    log_rank_ = report_.run.launch.rank.value_or(-1);
    std::vector<std::string> complaints;
    allow_ = AllowList::read(absolute(options_.allow, start_cwd_), complaints);
    // On stderr, as complaints about options are, wherever the log goes.
    for (const std::string& complaint : complaints) stderr_log().line(Level::Always, complaint);
    log_.set_verbosity(options_.verbosity);
    if (options_.log == "none") log_.silence();
    for (const std::string& rule : allow_.rules()) report_.run.suppressed[rule] = 0;
}

/// For each text anew: the rank may be known only later.
int Reporter::open_log() const {
    if (options_.log == "stderr") return -1;
    const int rank = log_rank_.load(std::memory_order_relaxed);
    const RunSummary& run = report_.run;
    const PathFacts facts{run.pid, rank < 0 ? std::nullopt : std::optional(rank), run.host, run.started};
    return open_to_append(absolute(expand_path(options_.log, facts), start_cwd_));
}

void Reporter::print(const std::string& text) const { log_.text(Level::Always, text); }

void Reporter::say(const std::string& text, Level level) const { log_.line(level, text); }

TextStyle Reporter::text_style() const {
    TextStyle style = detect_style(STDERR_FILENO, options_.color);
    style.cwd = start_cwd_;
    return style;
}

void Reporter::merge_counts(const RunSummary& counts) {
    RunSummary& run = report_.run;
    run.steps = counts.steps;
    run.ops = counts.ops;
    run.scanned = counts.scanned;
    run.bytes = counts.bytes;
    run.skipped = counts.skipped;
    run.forgotten = counts.forgotten;
    run.blind_spots = counts.blind_spots;
    run.wall_s = counts.wall_s;
    run.hook_s = counts.hook_s;
    run.scan_s = counts.scan_s;
    run.births = counts.births;
    run.escaped = counts.escaped;
    run.absorbed = counts.absorbed;
    run.scaler_skips = counts.scaler_skips;
    run.skipped_steps = counts.skipped_steps;
    run.slow = counts.slow;
    run.sections = counts.sections;
    run.faulty = counts.faulty;
    run.incomplete = counts.incomplete;
    run.lost = counts.lost;
    run.launches = counts.launches;
    run.kernels = counts.kernels;
    run.framework_version = counts.framework_version;
    run.python_version = counts.python_version;
    run.python_path = counts.python_path;
    run.ended = counts.ended;
    run.exit_status = counts.exit_status;
    run.dropped = counts.dropped;
    if (!counts.tiers.empty()) {
        run.tier = counts.tier;
        run.tiers = counts.tiers;
    }
    run.devices = counts.devices;
    run.groups = counts.groups;
    run.host_bytes = counts.host_bytes;
    run.device_bytes = counts.device_bytes;
}

/// True when a rule of the allow-list matches: counted, not shown, and nothing is contaminated by it.
bool Reporter::suppress(const Finding& finding, BirthId birth) {
    const std::string* rule = allow_.match(finding, start_cwd_);
    if (rule == nullptr) return false;
    ++report_.run.suppressed[*rule];
    finding_of_.erase(birth);
    return true;
}

/// For births like this one that come without names: they are of the same lines.
void Reporter::keep_traced(const Birth& birth, const LiveNames& names) {
    constexpr size_t kMaxKept = 1 << 12;
    if (names.traced.empty() || traced_.size() >= kMaxKept) return;
    for (const StackId stack : {birth.stack, birth.forward_stack}) {
        for (const SourceFrame& frame : stacks_.resolve(stack)) {
            const auto line = names.traced.find({frame.file, frame.line});
            if (line != names.traced.end()) traced_.insert(*line);
        }
    }
}

std::vector<BirthId> Reporter::add(const Outcome& outcome, const LiveNames& known_names, const RunSummary& counts,
                                   const TensorReader& reader) {
    // A birth seen before comes without names, and only its module may set it apart from one that a rule suppresses.
    LiveNames own_names;
    const bool ask = known_names.modules.empty() && !outcome.escaped.empty() && allow_.names_modules();
    if (ask) own_names = stacks_.names(reader);
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool nameless = known_names.modules.empty() && known_names.tensors.empty() && known_names.traced.empty();
    if (nameless && !ask && !outcome.escaped.empty() && !allow_.rules().empty()) own_names.traced = traced_;
    const LiveNames& names = ask || nameless ? own_names : known_names;
    if (finished_) return {};  // another thread still runs while the process ends: the last report has been written
    places_.learn(known_names.sources);
    const TextStyle style = text_style();
    std::vector<std::pair<size_t, BirthId>> added;
    bool worth_writing = false;
    for (const EscapedBirth& escaped : outcome.escaped) {
        if (is_repeated(escaped)) {
            const size_t index = finding_of_.at(escaped.birth.repeats);
            remember(escaped.birth.id, index);
            finding_of_[escaped.birth.repeats] = index;  // the next may repeat it, too
            continue;
        }
        // A loop that goes on with bad values makes the same births in every step: only the rules need to see each of
        // them.
        if (const auto at = finding_by_place_.find(escaped.place);
            at != finding_by_place_.end() && allow_.rules().empty() && !is_milder(at->second, escaped.severity)) {
            if (at->second == kDropped) continue;
            count_again(at->second, escaped);
            worth_writing = worth_writing || (counted_again_ & (counted_again_ - 1)) == 0;
            continue;
        }
        worth_writing = true;
        Finding finding = build_finding(escaped, stacks_, ranges_, names, places_);
        finding.first = report_.findings.empty();
        finding.rank = report_.run.launch.rank;
        keep_traced(escaped.birth, names);
        if (suppress(finding, escaped.birth.id)) continue;
        const std::string mark = place_of_finding(finding);
        const auto known = finding_by_mark_.find(mark);
        if (known != finding_by_mark_.end() && is_milder(known->second, escaped.severity)) {
            finding.id = report_.findings[known->second].id;
            finding_of_[escaped.birth.id] = known->second;
            finding.dump = report_.findings[known->second].dump;
            added.emplace_back(known->second, escaped.birth.id);
            report_.findings[known->second] = std::move(finding);
            continue;
        }
        if (known != finding_by_mark_.end()) {
            know_place(escaped.place, known->second);
            if (known->second != kDropped) count_again(known->second, escaped);
            continue;
        }
        if (report_.findings.size() >= static_cast<size_t>(options_.max_findings)) {
            ++dropped_findings_;
            if (finding_by_mark_.size() < kMostPlaces) finding_by_mark_[mark] = kDropped;
            know_place(escaped.place, kDropped);
            continue;
        }
        finding.id = "F" + std::to_string(report_.findings.size() + 1);
        finding_by_mark_[mark] = report_.findings.size();
        know_place(escaped.place, report_.findings.size());
        finding_of_[escaped.birth.id] = report_.findings.size();
        added.emplace_back(report_.findings.size(), escaped.birth.id);
        report_.findings.push_back(std::move(finding));
    }
    for (const Contamination& c : outcome.contaminated) {
        const auto at = finding_of_.find(c.birth);
        const auto name = names.tensors.find(c.impl);
        if (at == finding_of_.end() || name == names.tensors.end() || !is_state(c.kind)) continue;
        std::vector<Contaminated>& list = report_.findings[at->second].contaminated;
        const bool there = std::any_of(list.begin(), list.end(), [&](const Contaminated& have) {
            return have.kind == c.kind && have.name == name->second.name;
        });
        if (there) continue;
        list.push_back({c.kind, name->second.name, c.since_step});
        worth_writing = true;
    }
    for (const SentBirth& sent : outcome.sent) {
        const auto at = finding_of_.find(sent.birth);
        if (at == finding_of_.end() || at->second == kDropped) continue;
        std::vector<CollectiveFact>& list = report_.findings[at->second].sent;
        if (list.size() >= kMostSent || (!list.empty() && list.back().seq == sent.where.seq)) continue;
        list.push_back(sent.where);
        worth_writing = worth_writing || std::has_single_bit(list.size());
    }
    merge_counts(counts);
    const bool dumps = dumps_ != nullptr && dumps_->active() && !added.empty();
    if (dumps) write();  // a file may take seconds: what is found is safe
    std::vector<BirthId> births;
    for (const auto& [index, birth] : added) {
        births.push_back(birth);
        Finding& finding = report_.findings[index];
        if (const auto problem = dumps && !finding.dump ? dumps_->write(finding, birth, report_.run) : std::nullopt)
            say(*problem);
        print(render_finding(finding, style));
        reported_unsafe_since_ = std::min(reported_unsafe_since_, unsafe_since(finding));
    }
    if (worth_writing) write();
    return births;
}

/// What was reported as absorbed has escaped after all, while the program ended.
bool Reporter::is_milder(size_t index, Severity severity) const {
    return index != kDropped && severity != Severity::Info && report_.findings[index].severity == Severity::Info;
}

/// The finding of the value that it may repeat stands for it, too.
bool Reporter::is_repeated(const EscapedBirth& escaped) const {
    const auto at = finding_of_.find(escaped.birth.repeats);
    return at != finding_of_.end() && report_.findings[at->second].severity <= escaped.severity;
}

/// What the birth reaches from now on is that finding's.
void Reporter::remember(BirthId birth, size_t index) {
    constexpr size_t kMaxKept = 1 << 16;
    // Of old births: what they reach from now on is nobody's, and what repeats them is a finding of its own.
    if (finding_of_.size() >= kMaxKept) finding_of_.clear();
    finding_of_[birth] = index;
}

void Reporter::count_again(size_t index, const EscapedBirth& escaped) {
    // Not those that were absorbed where others escaped.
    if (escaped.severity == Severity::Info && report_.findings[index].severity != Severity::Info) return;
    ++counted_again_;
    report_.findings[index].count += escaped.times;
    remember(escaped.birth.id, index);
}

void Reporter::know_place(const std::string& place, size_t index) {
    if (finding_by_place_.size() >= kMostPlaces) finding_by_place_.clear();
    finding_by_place_[place] = index;
}

/// The schema's order: by birth, which is not the order in which they escaped.
Report Reporter::in_order_of_birth() const {
    Report ordered = report_;
    std::stable_sort(ordered.findings.begin(), ordered.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.seq < b.seq; });
    for (size_t i = 0; i < ordered.findings.size(); ++i) {
        ordered.findings[i].id = "F" + std::to_string(i + 1);
        ordered.findings[i].first = i == 0;
    }
    return ordered;
}

void Reporter::write() {
    if (const std::optional<std::string> problem = file_.write(in_order_of_birth()))
        say("the report was not written: " + *problem);
}

/// What the summary says of them, for a run that has none.
void Reporter::print_unmatched_rules() const {
    std::string rules;
    for (const auto& [rule, count] : report_.run.suppressed) {
        if (count == 0) rules += (rules.empty() ? "" : ", ") + rule;
    }
    if (!rules.empty()) say("allow-list rules that matched nothing: " + rules, Level::Summary);
}

void Reporter::begin(const RunSummary& counts) {
    const std::lock_guard<std::mutex> lock(mutex_);
    merge_counts(counts);
    file_.begin(in_order_of_birth());
}

void Reporter::withdraw() {
    const std::lock_guard<std::mutex> lock(mutex_);
    file_.withdraw(report_.run);
}

void Reporter::finish(const RunSummary& counts) {
    const std::lock_guard<std::mutex> lock(mutex_);
    merge_counts(counts);
    finished_ = true;
    if (child_ && report_.findings.empty() && !report_.run.tells()) return;
    write();
    const TextStyle style = text_style();
    const bool summarized = options_.verbosity >= 2 || (options_.verbosity >= 1 && !report_.findings.empty());
    int64_t since = kSafe;
    for (const Finding& finding : report_.findings) since = std::min(since, unsafe_since(finding));
    // Before what makes the run slow, which has help of its own.
    if (summarized && since < reported_unsafe_since_) print(render_checkpoint_help(since, style));
    if (report_.run.slow && !report_.run.slow->findings.empty()) print(render_performance(report_, style));
    if (summarized) {
        print(render_summary(report_, style, file_.is_own() ? file_.name(report_.run) : ""));
    } else {
        if (!report_.run.lost.empty()) say("incomplete: " + report_.run.lost, Level::Summary);
        print_unmatched_rules();
    }
    if (dropped_findings_ > 0) {
        say(std::to_string(dropped_findings_) + " further findings were counted and not kept (max_findings=" +
                std::to_string(options_.max_findings) + ")",
            Level::Summary);
    }
    if (log_.shows(Level::Debug)) {
        const RunSummary& run = report_.run;
        say("debug: " + grouped(run.births) + " bad values were born, " + grouped(run.escaped) + " escaped, " +
                grouped(run.absorbed) + " stayed masked; " + grouped(run.bytes) + " bytes were read in a run of " +
                value_text(run.wall_s) + " seconds",
            Level::Debug);
    }
}

bool Reporter::has_room() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return report_.findings.size() < static_cast<size_t>(options_.max_findings);
}

void Reporter::use(const ProcessRank& rank) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (report_.run.launch.rank.has_value() || finished_) return;
    report_.run.launch.rank = rank.rank;
    report_.run.launch.world_size = rank.world_size;
    report_.run.launch.launcher = "process group";  // the program numbered its processes itself
    log_rank_.store(rank.rank, std::memory_order_relaxed);
    for (Finding& finding : report_.findings) finding.rank = rank.rank;
}

std::string Reporter::json() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return to_json(in_order_of_birth());
}

RunSummary Reporter::run() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return report_.run;
}

std::string Reporter::file_name() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return file_.is_own() ? file_.name(report_.run) : "";
}

void Reporter::write_job(const std::string& document) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const std::optional<std::string> problem = file_.write_job(report_.run, document))
        say("what the ranks of the job have found was not written: " + *problem);
}

bool Reporter::has(Severity severity) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(report_.findings.begin(), report_.findings.end(),
                       [&](const Finding& f) { return f.severity <= severity; });
}

bool Reporter::empty() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return report_.findings.empty();
}

void Reporter::begin_child() {
    child_ = true;
    report_.findings.clear();
    finding_of_.clear();
    finding_by_mark_.clear();
    finding_by_place_.clear();
    finished_ = false;
    reported_unsafe_since_ = kSafe;
    for (auto& [rule, count] : report_.run.suppressed) count = 0;
    report_.run.pid = getpid();
    report_.run.process = process_identity();
    file_.begin_child();
    report_.run.started = now_text();
}

}  // namespace numsan
