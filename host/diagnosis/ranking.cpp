#include "host/diagnosis/ranking.h"

#include <algorithm>

#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

bool has(const std::vector<Fault>& faults, FaultId id) {
    return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.id == id; });
}

}  // namespace

std::vector<Fault> rank_faults(const Signals& signals) {
    std::vector<Fault> faults;
    diagnose_optimizer(signals, faults);
    diagnose_loss(signals, faults);
    diagnose_layers(signals, faults);
    diagnose_rate(signals, faults);
    // Gradients that pile up, and steps that are too large, do to layers and losses what other faults do.
    const bool piles_up = has(faults, FaultId::MissingZeroGrad);
    const bool too_large = has(faults, FaultId::RateTooLarge);
    std::erase_if(faults, [&](const Fault& fault) {
        switch (fault.id) {
            case FaultId::RateTooLarge: return piles_up || has(faults, FaultId::MissingLogSoftmax);
            case FaultId::DeadLayer:
            case FaultId::SaturatedLayer: return piles_up || too_large;
            case FaultId::VanishingGradient: return has(faults, FaultId::SaturatedLayer);
            default: return false;
        }
    });
    std::stable_sort(faults.begin(), faults.end(),
                     [](const Fault& a, const Fault& b) { return a.confidence > b.confidence; });
    return faults;
}

}  // namespace numsan
