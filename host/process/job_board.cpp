#include "host/process/job_board.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "host/log/rank_list.h"
#include "host/process/run_facts.h"

namespace numsan {
namespace {

/// Ends of steps at which rank 0 looks after an error: a rank that computes another part of the step may be late. And
/// how often a rank tries to leave its own.
constexpr int kMostTries = 3;
constexpr int kMostLooks = 16;  ///< of a run
constexpr int kMostOwn = 2;     ///< that a rank leaves: what was born before may be found later

/// Another rank made the value. An overflow of a sum is nobody's but the operation's.
bool is_received(const Finding& finding) { return finding.received && finding.mechanism == Mechanism::DATA; }

JobMember self_of(const RunSummary& run) {
    return {run.launch.rank.value_or(-1), run.launch.world_size.value_or(0), run.launch.job.value_or("")};
}

/// Whether one of them is known to have been before this one.
bool is_after_one_of(const RankError& error, const std::vector<RankError>& all) {
    return std::any_of(all.begin(), all.end(), [&](const RankError& other) { return other.is_before(error); });
}

/// Of those that were first. Nothing where that is this rank alone: its finding stands in the same log.
std::string said_of(const std::vector<RankError>& firsts, const RunSummary& run) {
    std::set<int64_t> ranks;
    const RankError* shown = nullptr;
    for (const RankError& error : firsts) {
        ranks.insert(error.rank);
        if (shown == nullptr && error.rank != run.launch.rank) shown = &error;
    }
    if (shown == nullptr) return "";
    const std::string host = shown->host == run.host ? "" : shown->host;
    const std::string of_all = " of " + std::to_string(run.launch.world_size.value_or(0));
    const std::string rank = "rank " + std::to_string(shown->rank);
    const std::string who = ranks.size() == 1
                                ? rank + of_all + " was first" + (host.empty() ? "" : ", on " + host) + ": "
                                : "ranks " + rank_list({ranks.begin(), ranks.end()}) + of_all + " were first: " + rank +
                                      (host.empty() ? "" : " on " + host) + " has ";
    return who + shown->code + ": " + shown->title + ", " +
           (shown->place.empty() ? "no source line is known" : "at " + shown->place) + ", step " +
           std::to_string(shown->step) + (shown->report.empty() ? "" : "; its report is " + shown->report);
}

}  // namespace

struct JobBoard::State {
    std::atomic<bool> due{false};
    std::atomic<bool> has_error{false};
    std::mutex mutex;              ///< of what follows; not held while the store is asked
    std::optional<RankError> own;  ///< this rank's
    OpSeq own_seq{};
    int left = 0;         ///< of this rank's, which others can see
    bool is_left = true;  ///< `own` is one of them
    int tries = 0;        ///< that are left: to leave it, or to look
    int looks = 0;
    std::vector<RankError> others;
    std::string said;
    std::string taken;  ///< the document, as it was last
    std::unique_ptr<State> before;

    /// Those that were first, and how many they are; then the others.
    std::pair<std::vector<RankError>, size_t> in_order() const {
        std::vector<RankError> all = others;
        if (own) all.push_back(*own);
        std::stable_sort(all.begin(), all.end(), [](const RankError& a, const RankError& b) {
            return a.step != b.step ? a.step < b.step : a.rank < b.rank;
        });
        const std::vector<RankError> known = all;
        const auto rest = std::stable_partition(all.begin(), all.end(),
                                                [&](const RankError& error) { return !is_after_one_of(error, known); });
        const auto firsts = static_cast<size_t>(rest - all.begin());
        return {std::move(all), firsts};
    }

    /// A launcher may start ranks anew with the store of those before.
    void take_up(const std::vector<std::string>& texts, const RunSummary& run) {
        for (const std::string& text : texts) {
            std::optional<RankError> error = rank_error_of(text);
            if (!error || error->rank == 0 || error->found_at < run.started) continue;
            const bool known = std::any_of(others.begin(), others.end(),
                                           [&](const RankError& other) { return other.document == error->document; });
            if (!known) others.push_back(std::move(*error));
        }
    }

    /// What is new in what is to be said.
    std::string news(const RunSummary& run) {
        auto [all, firsts] = in_order();
        all.erase(all.begin() + static_cast<ptrdiff_t>(firsts), all.end());
        std::string text = said_of(all, run);
        if (text.empty() && !said.empty())
            text = "rank 0 of " + std::to_string(run.launch.world_size.value_or(0)) +
                   " was first after all, with a finding of its own";
        if (text == said) return "";
        said = text;
        return text;
    }
};

JobBoard::JobBoard() : state_(new State) {}
JobBoard::~JobBoard() { delete state_.load(); }

void JobBoard::use(const JobStore& store, void (*on_own_thread)()) noexcept {
    store_ = store;
    on_own_thread_ = on_own_thread;
}

void JobBoard::begin_child(bool of_rank) noexcept {
    State* const fresh = new (std::nothrow) State;
    if (of_rank || fresh == nullptr) store_ = {};
    if (fresh == nullptr) return;
    fresh->before.reset(state_.load());
    state_.store(fresh);
}

void JobBoard::found(const Finding& finding, const RunSummary& run, const std::string& report) {
    if (store_.left == nullptr || !run.launch.rank || run.launch.world_size.value_or(1) < 2) return;
    if (finding.severity != Severity::Error) return;
    const bool reads = *run.launch.rank == 0;
    {
        State& known = state();
        const std::lock_guard<std::mutex> lock(known.mutex);
        const bool makes = !is_received(finding) && (!known.own || finding.seq < known.own_seq);
        if (makes) {
            known.own = rank_error(finding, run, report, now_text());
            known.own_seq = finding.seq;
            known.is_left = known.left >= kMostOwn;
        }
        if (!reads && (!makes || known.is_left)) return;
        known.has_error = true;
        known.tries = kMostTries;
        known.due = true;
    }
    if (!reads) leave_own(run);
}

void JobBoard::leave_own(const RunSummary& run) {
    State& known = state();
    std::string text;
    {
        const std::lock_guard<std::mutex> lock(known.mutex);
        if (!known.own || known.is_left || known.tries <= 0) return;
        --known.tries;
        known.is_left = true;  // no other thread leaves it meanwhile
        text = known.own->document;
    }
    const bool done = store_.leave(text, self_of(run), on_own_thread_);
    const std::lock_guard<std::mutex> lock(known.mutex);
    if (done) ++known.left;
    if (!done && known.own->document == text) known.is_left = false;
    if (known.is_left || known.tries <= 0) known.due = false;
}

bool JobBoard::is_due(bool last) const noexcept {
    const State& known = state();
    return known.due.load(std::memory_order_relaxed) || (last && known.has_error.load(std::memory_order_relaxed));
}

std::string JobBoard::attend(const RunSummary& run, bool last) {
    if (!is_due(last) || store_.left == nullptr) return "";
    if (run.launch.rank != 0) {
        leave_own(run);
        return "";
    }
    State& known = state();
    {
        const std::lock_guard<std::mutex> lock(known.mutex);
        if (--known.tries <= 0 || last) known.due = false;
        if (++known.looks > kMostLooks) return "";
    }
    const std::vector<std::string> texts = store_.left(self_of(run), on_own_thread_);
    const std::lock_guard<std::mutex> lock(known.mutex);
    known.take_up(texts, run);
    return known.news(run);
}

std::string JobBoard::take_document(const RunSummary& run) {
    if (run.launch.rank != 0) return "";
    State& known = state();
    const std::lock_guard<std::mutex> lock(known.mutex);
    if (known.others.empty()) return "";
    std::string document = job_document(run, known.in_order().first);
    if (document == known.taken) return "";
    known.taken = document;
    return document;
}

}  // namespace numsan
