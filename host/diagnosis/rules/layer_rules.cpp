// Layers that hand nothing on: forwards zeros or limits, backwards nothing.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

const ParameterSignals* parameter_of(const Signals& signals, const ActivationSignals& one) {
    const auto at = static_cast<size_t>(one.parameter);
    return one.parameter >= 0 && at < signals.parameters.size() ? &signals.parameters[at] : nullptr;
}

/// A weight that gets no gradient while the training learns nothing: what lies before a layer whose own weight is not
/// known, because an op stands between the two.
const ParameterSignals* silenced_weight(const Signals& signals) {
    if (!has_not_fallen(signals)) return nullptr;
    for (const ParameterSignals& one : signals.parameters) {
        if (!is_weight(one) || one.op.find("embedding") != std::string::npos) continue;
        if (holds_lately(one.gradient, [](const Sample& sample) { return sample.value == 0; })) return &one;
    }
    return nullptr;
}

void dead_layer(const Signals& signals, std::vector<Fault>& faults) {
    for (const ActivationSignals& one : signals.activations) {
        const ParameterSignals* own = parameter_of(signals, one);
        const ParameterSignals* before = own == nullptr && one.feeds ? silenced_weight(signals) : own;
        if (before == nullptr) continue;
        const bool dead = holds_lately(one.zeros, [&](const Sample& sample) {
            return sample.value == 1 && sample.at < before->gradient.size() && before->gradient[sample.at] == 0;
        });
        if (!dead) continue;
        Fault fault = make_fault(FaultId::DeadLayer, one.location);
        fault.evidence.push_back("all results of `" + one.op + "` were exactly zero in the last " +
                                 grouped(kDiagnosedSteps) + " sampled steps in which it ran");
        fault.evidence.push_back("the gradient of " + name_of(*before) +
                                 (own != nullptr ? ", which the op before it reads," : "") +
                                 " was exactly zero in these");
        fault.help.back() = "check the initialisation of " + name_of(*before) + " and of its bias";
        fault.signals = {"zeros", "gradient"};
        faults.push_back(std::move(fault));
        return;  // layers behind it are dead by it
    }
}

void saturated_layer(const Signals& signals, std::vector<Fault>& faults) {
    if (!has_not_fallen(signals)) return;
    for (const ActivationSignals& one : signals.activations) {
        const ParameterSignals* own = parameter_of(signals, one);
        const ParameterSignals* before = own == nullptr ? silenced_weight(signals) : own;
        if (before == nullptr || !one.feeds) continue;
        if (!holds_lately(one.at_limit, [](const Sample& sample) { return sample.value >= kSaturatedShare; })) continue;
        Fault fault = make_fault(FaultId::SaturatedLayer, one.location);
        const std::vector<Sample> shares = measured(one.at_limit);
        fault.evidence.push_back(value_text(100 * shares.back().value) + " % of the results of `" + one.op +
                                 "` were at its limits, where its slope is below " + value_text(100 * kSaturatedSlope) +
                                 " % of the largest, in step " + digits(signals.steps[shares.back().at]));
        fault.evidence.push_back(loss_words(signals));
        fault.help.front() =
            "start " + name_of(*before) + " smaller: `torch.nn.init.xavier_uniform_` keeps sums near 1";
        fault.signals = {"at_limit", "loss"};
        faults.push_back(std::move(fault));
        return;
    }
}

/// Weights in the order of the forward pass that got gradients lately, and the size of these over that of the weight.
struct Layer {
    const ParameterSignals* weight;
    double gradient;
};

std::vector<Layer> layers_of(const Signals& signals) {
    std::vector<Layer> layers;
    for (const ParameterSignals& one : signals.parameters) {
        if (!is_weight(one) || one.op.find("embedding") != std::string::npos || one.op.empty()) continue;
        std::vector<double> ratios;
        for (size_t i = 0; i < one.gradient.size() && i < one.weight.size(); ++i) {
            if (one.weight[i] > 0 && !std::isnan(one.gradient[i])) ratios.push_back(one.gradient[i] / one.weight[i]);
        }
        if (ratios.size() >= static_cast<size_t>(kDiagnosedSteps)) layers.push_back({&one, median(ratios)});
    }
    return layers;
}

void vanishing_gradient(const Signals& signals, std::vector<Fault>& faults) {
    constexpr size_t kFewestLayers = 5;
    const std::vector<Layer> layers = layers_of(signals);
    if (!has_not_fallen(signals) || layers.size() < kFewestLayers) return;
    const Layer& first = layers.front();
    const Layer& last = layers.back();
    if (!(first.gradient > 0) || first.gradient > kVanishedGradient * last.gradient) return;
    size_t falls = 0;
    for (size_t i = 0; i + 1 < layers.size(); ++i) falls += layers[i].gradient < layers[i + 1].gradient ? 1 : 0;
    if (static_cast<double>(falls) < kFallingLayers * static_cast<double>(layers.size() - 1)) return;
    Fault fault = make_fault(FaultId::VanishingGradient, first.weight->location);
    fault.evidence.push_back("the gradient is " + value_text(first.gradient) + " of the weight at " +
                             name_of(*first.weight) + " and " + value_text(last.gradient) + " at " +
                             name_of(*last.weight) + ", " +
                             counted(static_cast<int64_t>(layers.size() - 1), "weight", "weights") + " behind it");
    fault.evidence.push_back("it falls towards the first layer between " + grouped(static_cast<int64_t>(falls)) +
                             " of " + grouped(static_cast<int64_t>(layers.size() - 1)) + " neighbours");
    fault.evidence.push_back(loss_words(signals));
    fault.signals = {"gradient", "weight", "loss"};
    faults.push_back(std::move(fault));
}

}  // namespace

void diagnose_layers(const Signals& signals, std::vector<Fault>& faults) {
    dead_layer(signals, faults);
    saturated_layer(signals, faults);
    vanishing_gradient(signals, faults);
}

}  // namespace numsan
