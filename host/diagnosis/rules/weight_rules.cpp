// What weights start from, what they read first, and what a regulariser makes of them.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

/// In step 0.
double size_at_start(const ParameterSignals& one) { return one.weight.empty() ? NAN : one.weight.front(); }

/// By how much the weight makes the sum of a row of inputs larger than they are, if it is random: by the shorter of its
/// two sides (`wide` false) or the longer.
double gain(const ParameterSignals& one, bool wide) {
    double behind = 1;
    for (size_t i = 1; i < one.shape.size(); ++i) behind *= static_cast<double>(one.shape[i]);
    const auto front = static_cast<double>(one.shape[0]);
    return size_at_start(one) * std::sqrt(wide ? std::max(front, behind) : std::min(front, behind));
}

/// Beside weights that were loaded, new ones may start as they like: adapters, heads.
bool has_loaded_layers(const Signals& signals) {
    return std::any_of(signals.parameters.begin(), signals.parameters.end(),
                       [](const ParameterSignals& one) { return is_of_layer(one) && one.initial.empty(); });
}

std::vector<const ParameterSignals*> summed_weights(const Signals& signals) {
    std::vector<const ParameterSignals*> found;
    for (const ParameterSignals& one : signals.parameters) {
        if (is_summed(one) && one.needs_gradient && std::isfinite(size_at_start(one))) found.push_back(&one);
    }
    return found;
}

std::optional<Place> where_made(const ParameterSignals& one) { return one.made_at ? one.made_at : one.location; }

/// Nearly all weights are zeros, or one is that never gets a gradient.
void zero_weights(const Signals& signals, std::vector<Fault>& faults) {
    constexpr double kNearlyAll = 0.75;
    const std::vector<const ParameterSignals*> weights = summed_weights(signals);
    const auto starts_at_zero = [](const ParameterSignals* one) {
        return one->initial == "zeros" && size_at_start(*one) == 0;
    };
    const auto zeros = std::count_if(weights.begin(), weights.end(), starts_at_zero);
    const auto stuck = std::find_if(weights.begin(), weights.end(), [&](const ParameterSignals* one) {
        return starts_at_zero(one) &&
               holds_lately(one->gradient, [](const Sample& sample) { return sample.value == 0; });
    });
    // Heads side by side may all start at zero: one must be behind another.
    const bool deep = std::any_of(weights.begin(), weights.end(),
                                  [&](const ParameterSignals* one) { return starts_at_zero(one) && one->feeds; });
    const bool all = deep && static_cast<double>(zeros) >= kNearlyAll * static_cast<double>(weights.size());
    if (zeros == 0 || (!all && stuck == weights.end())) return;
    const ParameterSignals& first =
        stuck != weights.end() ? **stuck : **std::find_if(weights.begin(), weights.end(), starts_at_zero);
    Fault fault = make_fault(FaultId::ZeroWeights, where_made(first));
    fault.evidence.push_back(grouped(zeros) + " of " +
                             counted(static_cast<int64_t>(weights.size()), "weight", "weights") +
                             " started as zeros, " + name_of(first) + " among them");
    if (stuck != weights.end())
        fault.evidence.push_back("the gradient of " + name_of(first) + " was exactly zero in the last " +
                                 grouped(kDiagnosedSteps) + " sampled steps");
    fault.signals = {"weight", "gradient"};
    faults.push_back(std::move(fault));
}

/// The first loss is a cross entropy far above that of a guess, or of predictions many times as large as their labels.
bool starts_far_off(const Signals& signals) {
    for (const LossSignals& loss : signals.losses) {
        if (loss.scale >= kLargeWeightGain) return true;
        if (loss.op != "aten::_log_softmax" || loss.classes < 2 || signals.loss.empty()) continue;
        if (signals.loss.front() >= kLargeFirstLoss * std::log(static_cast<double>(loss.classes))) return true;
    }
    return false;
}

void unequal_weights(const Signals& signals, std::vector<Fault>& faults) {
    const std::vector<const ParameterSignals*> weights = summed_weights(signals);
    std::vector<double> large, small;
    for (const ParameterSignals* one : weights) {
        if (one->initial != "random") return;
        large.push_back(gain(*one, false));
        small.push_back(gain(*one, true));
    }
    if (weights.size() < 2 || has_loaded_layers(signals)) return;
    const bool too_large = median(large) >= kLargeWeightGain && starts_far_off(signals);
    const auto few = std::count_if(small.begin(), small.end(), [](double one) { return one <= kSmallWeightGain; });
    const bool too_small = 2 * static_cast<size_t>(few) > small.size();  // a last layer may start small
    if (!too_large && !too_small) return;
    const auto first = std::find_if(weights.begin(), weights.end(), [&](const ParameterSignals* one) {
        return too_large ? gain(*one, false) >= kLargeWeightGain : gain(*one, true) <= kSmallWeightGain;
    });
    Fault fault = make_fault(too_large ? FaultId::LargeWeights : FaultId::SmallWeights, where_made(**first));
    fault.evidence.push_back("the first values of " + name_of(**first) + " have a root mean square of " +
                             value_text(size_at_start(**first)) + ": sums over its rows are about " +
                             value_text(gain(**first, too_small)) + " times as large as what is summed");
    fault.evidence.push_back("of " + counted(static_cast<int64_t>(weights.size()), "weight", "weights") +
                             " the median makes sums " + value_text(median(too_large ? large : small)) +
                             " times as large, where about 1 keeps them");
    fault.signals = {"weight"};
    faults.push_back(std::move(fault));
}

void strong_regularisation(const Signals& signals, std::vector<Fault>& faults) {
    for (const ActivationSignals& one : signals.activations) {
        if (measured(one.dropped).size() < static_cast<size_t>(kDiagnosedSteps)) continue;
        Fault fault = make_fault(FaultId::StrongRegularisation, one.location);
        fault.evidence.push_back("a dropout replaces " + value_text(100 * measured(one.dropped).back().value) +
                                 " % of what it is given by zeros");
        fault.help = {"drop less: 0.1 to 0.5 are usual"};
        fault.signals = {"dropped"};
        return faults.push_back(std::move(fault));
    }
    if (!has_not_fallen(signals)) return;
    std::vector<double> shares;
    for (const ParameterSignals& one : signals.parameters) {
        if (!is_weight(one) || !one.changed) continue;
        const std::vector<Sample> sizes = measured(one.weight);
        if (sizes.size() >= static_cast<size_t>(kDiagnosedSteps) && sizes.front().value > 0)
            shares.push_back(sizes.back().value / sizes.front().value);
    }
    if (shares.empty() || !(median(shares) <= kShrunkWeights)) return;
    Fault fault = make_fault(FaultId::StrongRegularisation, signals.optimizer);
    fault.evidence.push_back("weights have shrunk to " + value_text(median(shares)) +
                             " of their first size, the median of all, " + steps_words(signals));
    fault.evidence.push_back(loss_words(signals));
    fault.signals = {"weight", "loss"};
    faults.push_back(std::move(fault));
}

void unscaled_inputs(const Signals& signals, std::vector<Fault>& faults) {
    const bool stands = has_not_fallen(signals);
    if (!stands && !(loss_says_what_is_learned(signals) && layer_has_died(signals))) return;
    for (const ParameterSignals& one : signals.parameters) {
        if (!is_weight(one) || contains(one.op, "embedding")) continue;
        const std::vector<Sample> inputs = measured(one.input);
        if (!holds_lately(one.input, [](const Sample& sample) { return sample.value >= kLargeInput; })) continue;
        Fault fault = make_fault(FaultId::UnscaledInputs, one.location);
        fault.evidence.push_back("what `" + one.op + "` reads beside " + name_of(one) + " has a root mean square of " +
                                 value_text(inputs.back().value) + " in step " +
                                 digits(signals.steps[inputs.back().at]) + ", and no layer is before it");
        fault.evidence.push_back(stands ? loss_words(signals) : died_words());
        fault.signals = {"input", stands ? "loss" : "zeros"};
        return faults.push_back(std::move(fault));
    }
}

}  // namespace

void diagnose_weights(const Signals& signals, std::vector<Fault>& faults) {
    zero_weights(signals, faults);
    unequal_weights(signals, faults);
    strong_regularisation(signals, faults);
    unscaled_inputs(signals, faults);
}

}  // namespace numsan
