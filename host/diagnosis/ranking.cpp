#include "host/diagnosis/ranking.h"

#include <algorithm>
#include <initializer_list>

#include "host/diagnosis/learned/learned_faults.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

bool has(const std::vector<Fault>& faults, FaultId id) {
    return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.id == id; });
}

}  // namespace

std::vector<Fault> ruled_faults(const Signals& signals) {
    std::vector<Fault> faults;
    diagnose_optimizer(signals, faults);
    diagnose_loss(signals, faults);
    diagnose_layers(signals, faults);
    diagnose_rate(signals, faults);
    diagnose_reach(signals, faults);
    diagnose_weights(signals, faults);
    const std::vector<Fault> all = faults;
    const auto said = [&](std::initializer_list<FaultId> ids) {
        return std::any_of(ids.begin(), ids.end(), [&](FaultId id) { return has(all, id); });
    };
    // What weights start from, what they read and what a loss is held against come first: the rest follows from these.
    const bool bad_weights = said({FaultId::ZeroWeights, FaultId::LargeWeights, FaultId::SmallWeights});
    const bool begins_ill = bad_weights || said({FaultId::UnscaledInputs, FaultId::StrongRegularisation});
    const bool cut_off = said({FaultId::FrozenLayer, FaultId::DetachedLayer, FaultId::PartialOptimizer});
    // Gradients that pile up, and steps that are too large, do to layers and losses what other faults do.
    const bool piles_up = said({FaultId::MissingZeroGrad});
    const bool too_large = said({FaultId::RateTooLarge}) && !begins_ill;
    std::erase_if(faults, [&](const Fault& fault) {
        switch (fault.id) {
            case FaultId::RateTooLarge: return piles_up || begins_ill || said({FaultId::MissingLogSoftmax});
            case FaultId::DeadLayer: return piles_up || too_large || begins_ill;
            case FaultId::SaturatedLayer: return piles_up || too_large || bad_weights;
            case FaultId::RateTooSmall: return begins_ill;
            case FaultId::VanishingGradient: return said({FaultId::SaturatedLayer}) || begins_ill || cut_off;
            case FaultId::UnscaledInputs: return bad_weights || said({FaultId::SaturatedLayer});
            default: return false;
        }
    });
    std::stable_sort(faults.begin(), faults.end(),
                     [](const Fault& a, const Fault& b) { return a.confidence > b.confidence; });
    return faults;
}

std::vector<Fault> rank_faults(const Signals& signals) {
    std::vector<Fault> faults = ruled_faults(signals);
    if (!faults.empty() || !is_for_the_model(signals)) return faults;
    const LearnedModel* model = LearnedModel::own();  // which takes milliseconds to read
    return model != nullptr ? learned_faults(signals, *model) : faults;
}

}  // namespace numsan
