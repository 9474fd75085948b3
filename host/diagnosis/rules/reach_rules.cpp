// Which weights the training reaches: those that get no gradient, and those that no optimizer changes.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

bool any_gradient(const ParameterSignals& one) { return !measured(one.gradient).empty(); }

/// In nearly all sampled steps; of a frozen one nothing is known before the third.
bool is_read_throughout(const Signals& signals, const ParameterSignals& one) {
    return one.reads >= kDiagnosedSteps && 3 * one.reads >= 2 * static_cast<int64_t>(signals.steps.size());
}

/// Data may get gradients, too: points at which a network is derived.
bool is_of_model(const ParameterSignals& one) { return one.of_module || one.optimized.value_or(false); }

/// A weight that stays as an initialiser left it. Loaded ones are kept on purpose.
bool stays_random(const ParameterSignals& one) {
    return is_weight(one) && is_of_model(one) && !one.changed && one.initial == "random";
}

/// Adapters that start at zero train beside weights that are kept on purpose.
bool has_adapters(const Signals& signals) {
    return std::any_of(signals.parameters.begin(), signals.parameters.end(), [](const ParameterSignals& one) {
        return is_weight(one) && is_of_model(one) && one.needs_gradient && one.initial == "zeros";
    });
}

bool trains_weights(const Signals& signals) {
    return std::any_of(signals.parameters.begin(), signals.parameters.end(),
                       [](const ParameterSignals& one) { return is_weight(one) && one.changed; });
}

/// Weights that all have what `is` asks: how many, and the first.
struct Kept {
    int64_t count = 0;
    const ParameterSignals* first = nullptr;
};
template <class Is>
Kept kept_weights(const Signals& signals, Is&& is) {
    Kept kept;
    for (const ParameterSignals& one : signals.parameters) {
        if (!stays_random(one) || !is(one)) continue;
        if (kept.count++ == 0) kept.first = &one;
    }
    return kept;
}

std::string kept_words(const Kept& kept) {
    std::string words = counted(kept.count, "weight", "weights") + " of random first values, " + name_of(*kept.first) +
                        (kept.count > 1 ? " among them," : ",");
    return words;
}

void missing_step(const Signals& signals, std::vector<Fault>& faults) {
    constexpr int64_t kFewestPasses = 32;
    if (signals.optimizer_steps > 0 || signals.trend.count < kFewestPasses || signals.trend.places != 1) return;
    Kept kept;
    for (const ParameterSignals& one : signals.parameters) {
        if (one.changed) return;
        if (!any_gradient(one)) continue;
        if (is_weight(one) && one.needs_gradient && one.initial.empty()) return;  // loaded, or a new input in each pass
        if (one.initial != "random" || one.passes < kFewestPasses) continue;
        if (kept.count++ == 0) kept.first = &one;
    }
    if (kept.count == 0) return;
    Fault fault = make_fault(FaultId::MissingStep, signals.backward);
    fault.evidence.push_back(grouped(signals.trend.count) + " backward passes gave gradients to " +
                             counted(kept.count, "parameter", "parameters") + ", " + name_of(*kept.first) +
                             " among them");
    fault.evidence.push_back("no optimizer stepped, and no op wrote a parameter");
    fault.signals = {"gradient"};
    faults.push_back(std::move(fault));
}

void partial_optimizer(const Signals& signals, std::vector<Fault>& faults) {
    const Kept kept = kept_weights(signals, [](const ParameterSignals& one) {
        return has_gradients(one) && one.optimized.has_value() && !*one.optimized;
    });
    if (kept.count == 0) return;
    Fault fault = make_fault(FaultId::PartialOptimizer, signals.optimizer);
    fault.evidence.push_back(kept_words(kept) + " got gradients " + steps_words(signals) + " and did not change");
    fault.evidence.push_back("no optimizer holds " + std::string(kept.count > 1 ? "them" : "it") +
                             ", while others are trained");
    fault.signals = {"gradient", "update"};
    faults.push_back(std::move(fault));
}

void frozen_layer(const Signals& signals, std::vector<Fault>& faults) {
    const Kept kept = kept_weights(signals, [&](const ParameterSignals& one) {
        return !one.needs_gradient && one.feeds_trained && is_read_throughout(signals, one);
    });
    if (kept.count == 0) return;
    Fault fault = make_fault(FaultId::FrozenLayer, signals.optimizer);
    fault.evidence.push_back(kept_words(kept) + " " + (kept.count > 1 ? "need" : "needs") +
                             " no gradient and did not change " + steps_words(signals));
    fault.evidence.push_back("layers behind " + std::string(kept.count > 1 ? "them" : "it") + " are trained");
    fault.help.front() = "call `requires_grad_(True)` on " + name_of(*kept.first) + ", and give it to the optimizer";
    fault.signals = {"update"};
    faults.push_back(std::move(fault));
}

void detached_layer(const Signals& signals, std::vector<Fault>& faults) {
    const auto is_cut = [&](const ParameterSignals& one) {
        return one.needs_gradient && one.feeds_trained && !any_gradient(one) && is_read_throughout(signals, one);
    };
    const Kept kept = kept_weights(signals, is_cut);
    if (kept.count == 0) return;
    std::optional<Place> cut;
    for (const ParameterSignals& one : signals.parameters) {
        // A bias may be added behind the weight's op. The last one is nearest to what is trained.
        if (one.detached_at && !one.changed && one.initial == "random" && is_cut(one)) cut = one.detached_at;
    }
    Fault fault = make_fault(FaultId::DetachedLayer, cut ? cut : kept.first->location);
    fault.evidence.push_back(kept_words(kept) + " got no gradient " + steps_words(signals) +
                             ", though the forward pass reads " + (kept.count > 1 ? "them" : "it") +
                             " with gradients on");
    fault.evidence.push_back("layers behind " + std::string(kept.count > 1 ? "them" : "it") + " are trained");
    if (cut) fault.evidence.emplace_back("`detach()` is called there on what is computed of such a weight");
    fault.signals = {"gradient", "update"};
    faults.push_back(std::move(fault));
}

}  // namespace

void diagnose_reach(const Signals& signals, std::vector<Fault>& faults) {
    missing_step(signals, faults);
    if (!trains_weights(signals) || has_adapters(signals)) return;
    partial_optimizer(signals, faults);
    frozen_layer(signals, faults);
    detached_layer(signals, faults);
}

}  // namespace numsan
