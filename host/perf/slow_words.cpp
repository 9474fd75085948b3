#include "host/perf/slow_words.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "host/log/format.h"

namespace numsan {
namespace {

/// Set by hand: a batch and what belongs to it, its labels, lengths and masks, have fewer.
constexpr int64_t kManySmallCopies = 8;

/// What a batch costs the training thread that a worker has ready: measured with two workers and small tensors (torch
/// 2.11, Intel Xeon, 2 virtual cores, idle: 0.8 ms in the fastest tenth of 600 batches).
constexpr int64_t kNanosecondsFromAWorker = 800'000;

std::string percent_text(double share) { return fixed(100 * share, share < 0.0995 ? 1 : 0) + " %"; }

std::string filled(std::string text, const std::vector<std::pair<std::string_view, std::string>>& values) {
    for (const auto& [mark, value] : values) {
        if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), value);
    }
    return text;
}

SlowPlaces::Cost sum(const SlowPlaces::Cost& a, const SlowPlaces::Cost& b) {
    return {a.ns + b.ns, a.count + b.count, a.op != nullptr ? a.op : b.op, a.taken_back || b.taken_back};
}

/// Costs of one line.
struct Line {
    std::optional<Place> place;
    SlowPlaces::Cost cost;
};

std::optional<SlowFinding> finding_of(SlowCause cause, const Line& line, const SlowCosts& costs) {
    const SlowCauseInfo& row = info(cause);
    SlowFinding found;
    found.cause = cause;
    found.location = line.place;
    if (line.cost.op != nullptr) found.op = line.cost.op->name;
    found.seconds = 1e-9 * static_cast<double>(line.cost.ns);
    const int64_t remains = cause == SlowCause::LoaderWait ? line.cost.count * kNanosecondsFromAWorker : 0;
    const double saved = static_cast<double>(line.cost.ns - remains) / static_cast<double>(costs.step_ns);
    found.share = static_cast<double>(line.cost.ns) / static_cast<double>(costs.step_ns);
    found.count = line.cost.count;
    if (line.cost.taken_back || saved < row.least_share) return {};
    if (cause == SlowCause::SmallCopies && line.cost.count < kManySmallCopies) return {};
    found.measured = filled(row.measured, {{"{op}", found.op},
                                           {"{count}", std::to_string(found.count)},
                                           {"{time}", duration_text(found.seconds)},
                                           {"{step}", duration_text(1e-9 * static_cast<double>(costs.step_ns))},
                                           {"{share}", percent_text(found.share)}});
    return found;
}

}  // namespace

void SlowCosts::add(SlowCause cause, StackId stack, const SlowPlaces::Cost& cost) {
    const auto [at, added] = by_stack.try_emplace({cause, stack}, cost);
    if (!added) at->second = sum(at->second, cost);
}

std::string duration_text(double seconds) {
    const double us = 1e6 * seconds;
    if (us < 999.5) return number(us, 3) + " us";
    return us < 999.5e3 ? number(us / 1e3, 3) + " ms" : number(us / 1e6, 3) + " s";
}

SlowRun slow_run(const SlowCosts& costs, const StackSource& stacks, const PlaceFinder& places) {
    SlowRun run;
    run.steps = std::min(costs.steps, LastSteps::kKept);
    run.step_s = 1e-9 * static_cast<double>(costs.step_ns);
    if (costs.many_trainers) {
        run.not_measured.push_back("steps: several threads end them");
        return run;
    }
    if (costs.steps < kFewLookedSteps || costs.step_ns <= 0) {
        run.not_measured.push_back("the run: it has fewer than " + std::to_string(kFewLookedSteps) +
                                   " steps that could be looked at");
        return run;
    }
    if (costs.on_device) {
        run.not_measured.push_back(
            "what ops take on a device: of them only the host's waits and small copies are seen");
        run.not_measured.push_back("time between steps: with a device it may be spent waiting for it, which is no op");
    }
    if (costs.threads_left_out) run.not_measured.push_back("ops of more threads than there is room for");
    std::map<std::tuple<SlowCause, std::string, int>, Line> lines;
    for (const auto& [key, cost] : costs.by_stack) {
        const auto& [cause, stack] = key;
        if (cause == SlowCause::Float64 && costs.float64_is_meant) continue;
        if (cause == SlowCause::Between && costs.on_device) continue;
        if (cause == SlowCause::DroppedGradient && (costs.on_device || costs.gradients_leave)) continue;
        const std::vector<SourceFrame> frames = stacks.resolve(stack);
        const SourceFrame* frame = places.innermost(frames);
        const std::string file = frame != nullptr ? frame->file : "";
        Line& line = lines[{cause, file, frame != nullptr ? frame->line : 0}];
        if (frame != nullptr && !line.place) line.place = places.place(*frame);
        line.cost = sum(line.cost, cost);
    }
    for (const auto& [key, line] : lines) {
        if (std::optional<SlowFinding> found = finding_of(std::get<0>(key), line, costs))
            run.findings.push_back(std::move(*found));
    }
    std::stable_sort(run.findings.begin(), run.findings.end(),
                     [](const SlowFinding& a, const SlowFinding& b) { return a.seconds > b.seconds; });
    return run;
}

}  // namespace numsan
