#include "host/dump/dumps.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "host/dump/dump_document.h"
#include "host/report/atomic_file.h"

namespace numsan {

void Dumps::use(const HoldApi& hold) noexcept {
    if (options_.dump.empty() || hold.keep == nullptr) return;
    hold_ = hold;
    active_.store(true, std::memory_order_release);
}

int64_t Dumps::bytes(const Candidate& candidate) const {
    return hold_.bytes(candidate.op) + (candidate.forward != nullptr ? hold_.bytes(candidate.forward) : 0);
}

void Dumps::release(const Candidate& candidate) const {
    hold_.drop(candidate.op);
    if (candidate.forward != nullptr) hold_.drop(candidate.forward);
}

void Dumps::forget(size_t index) {
    const auto at = candidates_.begin() + static_cast<std::ptrdiff_t>(index);
    bytes_ -= bytes(*at);
    evicted_.insert(evicted_.end(), at->births.begin(), at->births.end());
    while (evicted_.size() > kMostEvicted) evicted_.pop_front();
    release(*at);
    candidates_.erase(at);
}

/// A place that makes births in every step, which never escape, must not take the room of another.
void Dumps::make_room(const Candidate& candidate) {
    size_t same = 0;
    size_t oldest = candidates_.size();
    for (size_t i = candidates_.size(); i-- > 0;) {
        if (candidates_[i].info != candidate.info || candidates_[i].stack != candidate.stack) continue;
        oldest = i;
        ++same;
    }
    if (same >= kMostOfPlace) forget(oldest);
    const int64_t most = 2 * options_.dump_limit;
    while (!candidates_.empty() && (candidates_.size() >= kMost || bytes_ + bytes(candidate) > most)) forget(0);
}

void Dumps::keep(const std::vector<BirthId>& born, const OpEvent& event, const OpContext& context) {
    if (!active() || born.empty()) return;
    Candidate made{born, hold_.keep(), nullptr, context.node != nullptr ? context.node : "", event.op, context.stack};
    if (made.op == nullptr) return;
    if (context.node != nullptr && hold_.keep_forward != nullptr)
        made.forward = hold_.keep_forward(context.node_thread, number(context.node_sequence));
    const std::lock_guard<std::mutex> lock(mutex_);
    make_room(made);
    bytes_ += bytes(made);
    candidates_.push_back(std::move(made));
}

std::optional<Dumps::Candidate> Dumps::take(BirthId birth) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
        return std::find(candidate.births.begin(), candidate.births.end(), birth) != candidate.births.end();
    });
    if (at == candidates_.end()) return std::nullopt;
    Candidate taken = std::move(*at);
    bytes_ -= bytes(taken);
    candidates_.erase(at);
    return taken;
}

/// After the `last` file nothing is held any more.
void Dumps::count_written(bool last) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (++written_ < options_.dump_findings && !last) return;
    active_.store(false, std::memory_order_release);
    if (!options_.break_at) hold_.stop();  // a stop shows operands, too
    for (const Candidate& candidate : candidates_) release(candidate);
    candidates_.clear();
    bytes_ = 0;
}

/// Empty with a `problem`. A file of that name was left by an earlier process of the same number.
std::string Dumps::file_path(const RunSummary& run, std::string& problem) const {
    const PathFacts facts{run.pid, run.launch.rank, run.host, run.started};
    std::string folder = expand_path(options_.dump, facts);
    if (folder.front() != '/' && !run.cwd.empty()) folder = run.cwd + "/" + folder;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error && !std::filesystem::is_directory(folder)) {
        problem = "cannot make the folder " + folder + ": " + error.message();
        return {};
    }
    if (folder.back() != '/') folder += '/';
    const std::string number = "-" + std::to_string(written_ + 1) + ".safetensors";
    std::string path = folder + "numsan-" + std::to_string(run.pid) + number;
    if (access(path.c_str(), F_OK) != 0) return path;
    return folder + expand_path("numsan-%p-%t", facts) + number;
}

std::string Dumps::why_missing(const Finding& finding, BirthId birth) const {
    if (std::find(evicted_.begin(), evicted_.end(), birth) != evicted_.end())
        return "too many or too large ones were kept after it, until one of them would be reported";
    if (finding.op == "external") return "no operator was seen to make the value";
    return "it was not held when it ran, as operators of compiled regions, captured graphs and other processes, "
           "those that a device answers late and those that a look back finds, are not";
}

std::optional<std::string> Dumps::write(Finding& finding, BirthId birth, const RunSummary& run) {
    if (!active()) return std::nullopt;
    const std::string whose = "of finding " + finding.id + " (" + finding.op + ")";
    const std::optional<Candidate> held = take(birth);
    if (!held) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return "no dump " + whose + ": " + why_missing(finding, birth);
    }
    std::string problem;
    const std::string path = file_path(run, problem);
    if (problem.empty()) {
        finding.dump = path;
        const HeldView* forward = held->forward != nullptr ? hold_.view(held->forward) : nullptr;
        const DumpFile file = dump_file({hold_.view(held->op), forward, held->node, options_.dump_limit}, finding, run);
        problem = write_atomically(path, file.parts).value_or("");
        if (!problem.empty()) finding.dump.reset();
    }
    release(*held);
    count_written(!problem.empty());  // a folder that cannot be written is said once
    if (problem.empty()) return std::nullopt;
    return "no dump " + whose + ": " + problem;
}

}  // namespace numsan
