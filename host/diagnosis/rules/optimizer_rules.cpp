// What an optimizer and its training loop do with gradients.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

/// In each of the last sampled steps nearly all parameters had gradients that the optimizer had used before.
void missing_zero_grad(const Signals& signals, std::vector<Fault>& faults) {
    constexpr double kNearlyAll = 0.9;
    Series shares;
    size_t parameters = 0;
    for (size_t i = 0; i < signals.steps.size(); ++i) {
        size_t carried = 0, known = 0;
        for (const ParameterSignals& one : signals.parameters) {
            if (i >= one.carried.size() || std::isnan(one.carried[i])) continue;
            ++known;
            carried += one.carried[i] > 0 ? 1 : 0;
        }
        const bool first = i == 0;  // nothing was there before
        shares.push_back(known > 0 && !first ? static_cast<double>(carried) / static_cast<double>(known) : NAN);
        parameters = std::max(parameters, carried);
    }
    if (!holds_lately(shares, [](const Sample& one) { return one.value >= kNearlyAll; })) return;
    Fault fault = make_fault(FaultId::MissingZeroGrad, signals.backward);
    fault.evidence.push_back("backward() added to gradients that the optimizer had used already, of up to " +
                             counted(static_cast<int64_t>(parameters), "parameter", "parameters") + " " +
                             steps_words(signals));
    fault.evidence.push_back("between two steps no op wrote these gradients, and none of them was dropped");
    fault.signals = {"carried"};
    faults.push_back(std::move(fault));
}

/// The optimizer holds what gets gradients, and yet nothing of it changes.
void cleared_gradients(const Signals& signals, int64_t parameters, const std::string& example,
                       std::vector<Fault>& faults) {
    // A rate of 0 does the same.
    const std::vector<Sample> sizes = measured(signals.step_size);
    if (std::any_of(sizes.begin(), sizes.end(), [](const Sample& one) { return one.value == 0; })) return;
    Fault fault = make_fault(FaultId::ClearedGradients, signals.optimizer);
    fault.evidence.push_back("gradients reached " + counted(parameters, "parameter", "parameters") + ", " + example +
                             " among them, " + steps_words(signals));
    fault.evidence.push_back("an optimizer holds them all and stepped, and none of them changed");
    fault.signals = {"gradient", "update"};
    faults.push_back(std::move(fault));
}

void idle_optimizer(const Signals& signals, std::vector<Fault>& faults) {
    if (signals.optimizer_steps < kDiagnosedSteps) return;
    int64_t with_gradients = 0, held = 0;
    std::string example;
    for (const ParameterSignals& one : signals.parameters) {
        if (one.changed) return;
        if (!has_gradients(one)) continue;
        if (++with_gradients == 1) example = name_of(one);
        held += one.optimized.value_or(false) ? 1 : 0;
    }
    if (with_gradients == 0) return;
    if (held == with_gradients) return cleared_gradients(signals, with_gradients, example, faults);
    Fault fault = make_fault(FaultId::IdleOptimizer, signals.optimizer);
    fault.evidence.push_back("gradients reached " + counted(with_gradients, "parameter", "parameters") + ", " +
                             example + " among them, " + steps_words(signals));
    fault.evidence.push_back("the optimizer stepped, and none of them changed");
    fault.signals = {"gradient", "update"};
    faults.push_back(std::move(fault));
}

}  // namespace

void diagnose_optimizer(const Signals& signals, std::vector<Fault>& faults) {
    missing_zero_grad(signals, faults);
    idle_optimizer(signals, faults);
}

}  // namespace numsan
