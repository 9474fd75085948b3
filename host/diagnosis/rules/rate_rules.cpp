// Whether steps are too large or too small for the weights that they change.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

/// Weights of which a step's share says something: one that starts at or near zero has steps as large as it is.
std::vector<const ParameterSignals*> grown_weights(const Signals& signals) {
    double largest = 0;
    for (const ParameterSignals& one : signals.parameters) {
        if (is_weight(one)) largest = std::max(largest, first_of(one.weight));
    }
    std::vector<const ParameterSignals*> weights;
    for (const ParameterSignals& one : signals.parameters) {
        if (is_weight(one) && first_of(one.weight) > kSmallStart * largest) weights.push_back(&one);
    }
    return weights;
}

/// For each sampled step the median of the updates of these weights; NaN where none was measured.
Series median_updates(const Signals& signals) {
    const std::vector<const ParameterSignals*> weights = grown_weights(signals);
    Series medians;
    for (size_t i = 0; i < signals.steps.size(); ++i) {
        std::vector<double> updates;
        for (const ParameterSignals* one : weights) {
            if (i < one->update.size() && !std::isnan(one->update[i])) updates.push_back(one->update[i]);
        }
        medians.push_back(median(updates));
    }
    return medians;
}

/// How many times as large as in the first sampled step the weights are in the last one, the median of all.
double median_growth(const Signals& signals) {
    std::vector<double> growths;
    for (const ParameterSignals* one : grown_weights(signals)) {
        const std::vector<Sample> sizes = measured(one->weight);
        if (sizes.size() >= 2) growths.push_back(sizes.back().value / sizes.front().value);
    }
    return median(growths);
}

std::string step_size_words(const Signals& signals) {
    const std::vector<Sample> sizes = measured(signals.step_size);
    if (sizes.empty()) return "";
    return "the optimizer's op multiplied updates by " + value_text(sizes.back().value) + " in step " +
           digits(signals.steps[sizes.back().at]);
}

/// Whether a layer that was alive at first is all zeros now, after steps that were large: these have pushed it there.
bool steps_have_killed(const Signals& signals, const std::vector<Sample>& updates) {
    const auto large =
        std::count_if(updates.begin(), updates.end(), [](const Sample& one) { return one.value >= kLargeUpdate; });
    return large >= 2 && layer_has_died(signals);
}

void rate_too_large(const Signals& signals, std::vector<Fault>& faults) {
    if (!has_not_fallen(signals)) return;
    const Series updates = median_updates(signals);
    const auto large = [](const Sample& one) { return one.value >= kLargeUpdate; };
    const std::vector<Sample> all = measured(updates);
    const double growth = median_growth(signals);
    const bool diverged =
        !std::isfinite(signals.trend.last) && all.size() >= 2 && std::all_of(all.begin(), all.end(), large);
    const bool killed = steps_have_killed(signals, all);
    if (!holds_lately(updates, large) && !diverged && !killed && !(growth >= kGrownByTraining && all.size() >= 2))
        return;
    Fault fault = make_fault(FaultId::RateTooLarge, signals.optimizer);
    const Sample last = killed ? *std::max_element(all.begin(), all.end(),
                                                   [](const Sample& a, const Sample& b) { return a.value < b.value; })
                               : all.back();
    fault.evidence.push_back("a step changed the weights by " + value_text(100 * last.value) +
                             " % of their size, the median of all, in step " + digits(signals.steps[last.at]));
    if (killed) fault.evidence.push_back(died_words());
    if (growth >= kGrownByTraining)
        fault.evidence.push_back("weights have become " + value_text(growth) + " times as large, the median of all");
    fault.evidence.push_back(loss_words(signals));
    if (const std::string size = step_size_words(signals); !size.empty()) fault.evidence.push_back(size);
    fault.signals = {"update", "loss", "step_size"};
    if (killed) fault.signals.emplace_back("zeros");
    faults.push_back(std::move(fault));
}

/// Of neighbouring numbers, relative to the number; 0: a type of which nothing is said.
double spacing(const std::string& dtype) {
    return dtype == "float32" ? kLostUpdate : dtype == "float64" ? kLostUpdateDouble : 0;
}

/// Position of the first of the last samples that are all at most `most`; the number of samples where there is none.
size_t still_from(const std::vector<Sample>& updates, double most) {
    size_t from = updates.size();
    while (from > 0 && updates[from - 1].value <= most) --from;
    return from;
}

/// Weights of which none moves any more, and since which sampled step.
struct Standstill {
    int64_t weights = 0;
    double most = 0;  ///< update over weight since then
    size_t since = 0;
    std::string dtype;
};

/// All weights stand still though gradients reach them.
std::optional<Standstill> standstill(const Signals& signals) {
    Standstill found;
    for (const ParameterSignals& one : signals.parameters) {
        if (!is_weight(one)) continue;
        const std::vector<Sample> updates = measured(one.update);
        if (updates.empty()) continue;
        if (spacing(one.dtype) == 0 || (!found.dtype.empty() && one.dtype != found.dtype)) return std::nullopt;
        found.dtype = one.dtype;
        const bool gradients = holds_lately(one.gradient, [](const Sample& sample) { return sample.value > 0; });
        if (!gradients || updates.size() < static_cast<size_t>(kDiagnosedSteps)) return std::nullopt;
        const size_t from = still_from(updates, spacing(one.dtype));
        if (from == updates.size()) return std::nullopt;
        if (from > 0) found.since = std::max(found.since, updates[from].at);
        for (size_t i = from; i < updates.size(); ++i) found.most = std::max(found.most, updates[i].value);
        ++found.weights;
    }
    return found.weights > 0 ? std::optional(found) : std::nullopt;
}

/// The step's size does not grow, as it would while a schedule warms up.
bool is_no_warm_up(const Signals& signals) {
    const std::vector<Sample> sizes = measured(signals.step_size);
    return sizes.size() >= static_cast<size_t>(kDiagnosedSteps) &&
           sizes.back().value <= 1.5 * sizes[sizes.size() / 2].value;
}

/// No weight ever moved, or none has since half of what was sampled: a schedule that falls to nothing.
void rate_too_small(const Signals& signals, std::vector<Fault>& faults) {
    if (!has_not_fallen(signals)) return;
    const std::optional<Standstill> still = standstill(signals);
    if (!still) return;
    const bool moved = still->since > 0;
    const int64_t since = signals.steps[still->since];
    if (moved ? still->since + 1 >= signals.steps.size() || 2 * since > signals.steps.back() : !is_no_warm_up(signals))
        return;
    Fault fault = make_fault(FaultId::RateTooSmall, signals.optimizer);
    fault.evidence.push_back("no step changed any of " + counted(still->weights, "weight", "weights") +
                             " by more than " + value_text(still->most) + " of its size " +
                             (moved ? "from step " + digits(since) + " on, " : "") + steps_words(signals) +
                             "; numbers of " + still->dtype + " lie " + value_text(spacing(still->dtype)) +
                             " apart, relative to the number");
    fault.evidence.push_back(loss_words(signals));
    if (const std::string size = step_size_words(signals); !size.empty()) fault.evidence.push_back(size);
    if (moved) std::swap(fault.help[0], fault.help[1]);
    fault.signals = {"update", "gradient", "loss", "step_size"};
    faults.push_back(std::move(fault));
}

}  // namespace

void diagnose_rate(const Signals& signals, std::vector<Fault>& faults) {
    rate_too_large(signals, faults);
    rate_too_small(signals, faults);
}

}  // namespace numsan
