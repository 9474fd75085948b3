#include "host/session/run_counts.h"

#include <utility>

#include "host/log/rank_list.h"

namespace numsan {
namespace {

const char* tier_text(Tier tier) { return tier == Tier::Auto ? "full" : to_string(tier); }

}  // namespace

/// Every op is scanned, or skipped for one reason: the figures add up to `ops`.
void RunCounts::add_coverage(RunSummary& run) const {
    run.scanned = parts_.coverage.scanned();
    run.bytes = parts_.coverage.bytes();
    run.skipped = parts_.coverage.skipped();
    int64_t judged = run.scanned;
    for (const auto& [why, count] : run.skipped) judged += count;
    run.ops = parts_.ops.load(std::memory_order_relaxed);  // last: an op is judged after it was counted
    const bool device = ended_.load() && devices_.has_events();
    if (run.ops > judged) run.skipped[device ? "the device had not finished" : "not judged yet"] = run.ops - judged;
}

/// Groups with which nothing but sends and receives was called count no operation.
void RunCounts::add_groups(RunSummary& run) const {
    for (const auto& [group, count] : parts_.collectives.all()) {
        GroupFacts facts{group->name, group->description, group->rank, group->size, "", static_cast<int64_t>(count)};
        if (group->ranks != nullptr) facts.ranks = rank_list({group->ranks, group->ranks + group->size});
        run.groups.push_back(std::move(facts));
    }
}

RunSummary RunCounts::now() const {
    RunSummary run;
    run.steps = parts_.contexts.steps().count();
    run.tier = tier_text(parts_.options.tier);
    add_coverage(run);
    add_groups(run);
    run.blind_spots = facts_.blind_spots;
    if (const AdapterApi* adapter = adapter_.load(std::memory_order_acquire);
        adapter != nullptr && uses_record_function(*adapter)) {
        run.blind_spots.push_back(
            "what saved-tensor hooks compute: operators are seen through record functions (hook: "
            "record_function), as another library holds the dispatch key");
    }
    run.incomplete = off_.failed();
    run.tiers["cpu"] = tier_text(parts_.options.tier);
    devices_.add_to(run, ended_.load());
    if (facts_.generated_kernels()) {
        run.blind_spots.push_back(
            "ops inside regions that torch.compile made kernels of: a region is looked into where it hands back "
            "something bad, or its result is looked at where it is read");
    }
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    run.scan_s = parts_.scan.seconds();
    const Verdict::Counts verdict = parts_.verdict.counts();
    run.births = verdict.births;
    run.escaped = verdict.escaped;
    run.absorbed = verdict.absorbed;
    run.scaler_skips = verdict.scaler_skips;
    run.skipped_steps = verdict.skipped_steps;
    run.forgotten = parts_.verdict.forgotten();
    run.forgotten["stacks"] = stacks_.forgotten();
    std::erase_if(run.forgotten, [](const auto& kind) { return kind.second == 0; });
    run.framework_version = facts_.torch_version;
    if (!facts_.python_version.empty()) run.python_version = facts_.python_version;
    if (!facts_.python_path.empty()) run.python_path = facts_.python_path;
    if (add_coverage_ != nullptr) add_coverage_(run);
    return run;
}

}  // namespace numsan
