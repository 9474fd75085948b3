#include "host/diagnosis/learned/learned_faults.h"

#include "host/diagnosis/fault_advice.h"
#include "host/diagnosis/rules/measures.h"

namespace numsan {
namespace {

/// The one with the largest value of those of which there is one; null where there is none.
template <class Each, class Value>
const Each* largest(const std::vector<Each>& all, Value&& value_of) {
    const Each* found = nullptr;
    for (const Each& one : all) {
        const double value = value_of(one);
        if (!std::isnan(value) && (found == nullptr || value > value_of(*found))) found = &one;
    }
    return found;
}

const ParameterSignals* first_weight(const Signals& signals) {
    const auto found = std::find_if(signals.parameters.begin(), signals.parameters.end(), is_weight);
    return found == signals.parameters.end() ? nullptr : &*found;
}

std::optional<Place> place_of(const Signals& signals, FaultPlace place) {
    switch (place) {
        case FaultPlace::Optimizer: return signals.optimizer;
        case FaultPlace::Backward: return signals.backward;
        case FaultPlace::Loss:
        case FaultPlace::MadeForLoss: {
            if (signals.losses.empty()) return signals.backward;
            const LossSignals& loss = signals.losses.front();
            return place == FaultPlace::MadeForLoss && loss.made_at ? loss.made_at : loss.location;
        }
        case FaultPlace::FirstWeight:
        case FaultPlace::FirstStart: {
            const ParameterSignals* one = first_weight(signals);
            if (one == nullptr) return {};
            return place == FaultPlace::FirstStart && one->made_at ? one->made_at : one->location;
        }
        case FaultPlace::Detached: {
            for (const ParameterSignals& one : signals.parameters) {
                if (one.detached_at) return one.detached_at;
            }
            return signals.backward;
        }
        case FaultPlace::MostZeros: {
            const auto* one = largest(signals.activations, [](const auto& each) { return last_of(each.zeros); });
            return one == nullptr ? std::nullopt : one->location;
        }
        case FaultPlace::MostAtLimit: {
            const auto* one = largest(signals.activations, [](const auto& each) { return last_of(each.at_limit); });
            return one == nullptr ? std::nullopt : one->location;
        }
        case FaultPlace::Input: {
            const auto* one = largest(signals.parameters, [](const auto& each) { return last_of(each.input); });
            return one == nullptr ? std::nullopt : one->location;
        }
    }
    return {};
}

Fault fault_of(const Signals& signals, const LearnedModel::Answer& answer, bool likeliest) {
    Fault fault = make_fault(answer.fault, place_of(signals, advice(answer.fault).place));
    fault.confidence = answer.confidence;
    fault.learned = true;
    fault.evidence.push_back(
        "no rule is met; a model that was learned from runs with a known fault takes this for the " +
        std::string(likeliest ? "likeliest" : "second likeliest"));
    for (const LearnedModel::Reason& reason : answer.reasons) {
        fault.evidence.push_back(
            std::string(reason.feature->words) + ": " + value_text(reason.value) +
            (std::isnan(reason.usual) ? "" : "; " + value_text(reason.usual) + " in the median healthy run"));
        const std::string signal = reason.feature->signal;
        if (!signal.empty() && std::find(fault.signals.begin(), fault.signals.end(), signal) == fault.signals.end())
            fault.signals.push_back(signal);
    }
    return fault;
}

}  // namespace

bool is_for_the_model(const Signals& signals) {
    return loss_says_what_is_learned(signals) && std::isfinite(signals.trend.first) &&
           std::isfinite(signals.trend.last);
}

std::vector<Fault> learned_faults(const Signals& signals, const LearnedModel& model) {
    if (!is_for_the_model(signals)) return {};
    std::vector<Fault> faults;
    for (const LearnedModel::Answer& answer : model.answers(features_of(signals)))
        faults.push_back(fault_of(signals, answer, faults.empty()));
    return faults;
}

}  // namespace numsan
