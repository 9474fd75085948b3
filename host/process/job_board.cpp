#include "host/process/job_board.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "host/log/rank_list.h"

namespace numsan {
namespace {

/// How often something is looked for at the ends of steps, as a rank that computes another part of the step may be
/// late; and how often it is tried to leave something.
constexpr int kMostTries = 3;

/// Another rank made the value. An overflow of a sum is nobody's but the operation's.
bool is_received(const Finding& finding) { return finding.received && finding.mechanism == Mechanism::DATA; }

}  // namespace

JobBoard::JobBoard() : state_(new State) {}

void JobBoard::use(const JobStore& store, void (*on_own_thread)()) noexcept {
    store_ = store;
    on_own_thread_ = on_own_thread;
}

void JobBoard::begin_child() noexcept {
    State* fresh = new (std::nothrow) State;
    if (fresh == nullptr) store_ = {};
    if (fresh != nullptr) state_.store(fresh);
}

void JobBoard::found(const Finding& finding, const RunSummary& run, const std::string& report) {
    if (store_.left == nullptr || !run.launch.rank || run.launch.world_size.value_or(1) < 2) return;
    if (finding.severity != Severity::Error) return;
    const bool reads = *run.launch.rank == 0;
    {
        State& known = state();
        const std::lock_guard<std::mutex> lock(known.mutex);
        const bool makes = !known.own && !is_received(finding);
        if (makes) known.own = rank_error(finding, run, report);
        if (reads ? !known.others.empty() || known.tries_left > 0 : !makes || ends_.load()) return;
        known.tries_left = kMostTries;
        known.due.store(true, std::memory_order_relaxed);
    }
    if (!reads) leave_own();
}

void JobBoard::leave_own() {
    State& known = state();
    std::string text;
    {
        const std::lock_guard<std::mutex> lock(known.mutex);
        if (!known.own || known.is_left || known.tries_left <= 0 || ends_.load()) return;
        --known.tries_left;
        known.is_left = true;  // no other thread leaves it meanwhile
        text = known.own->document;
    }
    const bool left = store_.leave(text, on_own_thread_);
    const std::lock_guard<std::mutex> lock(known.mutex);
    known.is_left = left;
    if (left || known.tries_left <= 0) known.due.store(false, std::memory_order_relaxed);
}

std::string JobBoard::attend(const RunSummary& run, bool last) {
    if (!is_due()) return "";
    if (run.launch.rank != 0) {
        leave_own();
        return "";
    }
    const std::vector<std::string> texts = store_.left(on_own_thread_);
    State& known = state();
    const std::lock_guard<std::mutex> lock(known.mutex);
    const bool news = known.take_up(texts);
    --known.tries_left;
    if (news || last || known.tries_left <= 0) known.due.store(false, std::memory_order_relaxed);
    return news ? known.said_of_first(run) : "";
}

/// True: there is one that was not known.
bool JobBoard::State::take_up(const std::vector<std::string>& texts) {
    const size_t before = others.size();
    for (; taken_up < texts.size(); ++taken_up) {
        std::optional<RankError> error = rank_error_of(texts[taken_up]);
        if (error && error->rank != 0) others.push_back(std::move(*error));
    }
    return others.size() > before;
}

std::vector<RankError> JobBoard::State::in_order() const {
    std::vector<RankError> all = others;
    if (own) all.push_back(*own);
    std::stable_sort(all.begin(), all.end(), [](const RankError& a, const RankError& b) { return a.is_before(b); });
    return all;
}

/// Nothing where this rank was first: its finding stands in the same log.
std::string JobBoard::State::said_of_first(const RunSummary& run) const {
    const std::vector<RankError> all = in_order();
    std::set<int64_t> ranks;
    const RankError* shown = nullptr;
    for (const RankError& error : all) {
        if (error.step != all.front().step) break;
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

std::string JobBoard::document(const RunSummary& run) const {
    if (run.launch.rank != 0) return "";
    const State& known = state();
    const std::lock_guard<std::mutex> lock(state().mutex);
    return known.others.empty() ? "" : job_document(run, known.in_order());
}

}  // namespace numsan
