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
    diagnose_reach(signals, faults);
    diagnose_weights(signals, faults);
    // What weights start from, what they read and what a loss is held against come first: the rest follows from these.
    const bool begins_ill = has(faults, FaultId::ZeroWeights) || has(faults, FaultId::LargeWeights) ||
                            has(faults, FaultId::SmallWeights) || has(faults, FaultId::UnscaledInputs) ||
                            has(faults, FaultId::StrongRegularisation);
    const bool cut_off = has(faults, FaultId::FrozenLayer) || has(faults, FaultId::DetachedLayer) ||
                         has(faults, FaultId::PartialOptimizer);
    // Gradients that pile up, and steps that are too large, do to layers and losses what other faults do.
    const bool piles_up = has(faults, FaultId::MissingZeroGrad);
    const bool too_large = has(faults, FaultId::RateTooLarge);
    std::erase_if(faults, [&](const Fault& fault) {
        switch (fault.id) {
            case FaultId::RateTooLarge: return piles_up || begins_ill || has(faults, FaultId::MissingLogSoftmax);
            case FaultId::DeadLayer: return piles_up || too_large || begins_ill;
            case FaultId::SaturatedLayer:
                return piles_up || too_large || has(faults, FaultId::ZeroWeights) ||
                       has(faults, FaultId::LargeWeights) || has(faults, FaultId::SmallWeights);
            case FaultId::RateTooSmall: return begins_ill;
            case FaultId::VanishingGradient: return has(faults, FaultId::SaturatedLayer) || begins_ill || cut_off;
            case FaultId::UnscaledInputs:
                return has(faults, FaultId::ZeroWeights) || has(faults, FaultId::LargeWeights) ||
                       has(faults, FaultId::SaturatedLayer);
            default: return false;
        }
    });
    std::stable_sort(faults.begin(), faults.end(),
                     [](const Fault& a, const Fault& b) { return a.confidence > b.confidence; });
    return faults;
}

}  // namespace numsan
