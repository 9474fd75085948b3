#include "host/verdict/loss_scalers.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>

#include "host/base/coldest.h"
#include "host/cause/measure.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

constexpr int kMostAdded = 8;  ///< ops between what was found for one optimizer and the sum of all

}  // namespace

bool LossScalers::comes_at_any_scale(const Birth& birth) const {
    if (birth.phase == Phase::Forward || birth.phase == Phase::Data || birth.phase == Phase::Load)
        return !stacks_.is_scaler(birth.stack);
    constexpr MechanismSet kOfTheScale = "OVF HYPER OPAQUE";
    if (birth.op == kCompiledRegion || kOfTheScale.contains(birth.mechanism)) return false;
    if (birth.kind == kNaN) return true;
    const int divisor = traits_of(birth.op).blamed;
    return divisor >= 0 && static_cast<size_t>(divisor) < birth.inputs.size() &&
           birth.inputs[static_cast<size_t>(divisor)].health.zero > 0;
}

void LossScalers::op(const OpEvent& event, int64_t step, Outcome& outcome) {
    escapes_.see_scaler();
    if (std::strcmp(event.op->name, "aten::_amp_update_scale_") == 0)
        scale_changes(event, step, outcome);
    else
        looks(event);
}

void LossScalers::looks(const OpEvent& event) {
    constexpr size_t kMaxLooks = 1 << 8;  // of optimizers that no update follows
    bool bad = false;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const BirthKinds* known = ledger_.find(event.inputs[i]);
        if (known == nullptr) continue;
        for (const Kind kind : kNonFiniteKinds) {
            Birth* birth = births_.find(known->of(kind));
            if (birth == nullptr) continue;
            birth->scaler = true;
            bad = true;
        }
    }
    // Gradients, whether one is bad, the scale's reciprocal.
    const void* found = event.input_count >= 3 ? event.inputs[event.input_count - 2].storage : nullptr;
    if (looks_.size() >= kMaxLooks && looks_.count(found) == 0) looks_.clear();
    looks_[found] = looks_[found] || bad;
    std::set<BirthId> held;
    for (const PendingEscape& p : pending_.of(PendingReason::Scaler)) held.insert(p.birth);
    std::erase_if(pending_.of(PendingReason::Gradient), [&](const PendingEscape& p) {
        const Birth* birth = births_.find(p.birth);
        if (birth == nullptr) return true;
        if (!birth->scaler || birth->escaped) return false;
        if (!held.insert(p.birth).second) return true;
        PendingEscape caught = p;
        caught.found = found;
        pending_.add(PendingReason::Scaler, caught);
        return true;
    });
}

/// The scale is written, then whether something was found is read.
void LossScalers::scale_changes(const OpEvent& event, int64_t step, Outcome& outcome) {
    constexpr size_t kMaxScalers = 64;
    const void* scaler = nullptr;
    std::set<const void*> found;  // of each optimizer the scaler looked for: they are added up
    double scale = -1;
    std::optional<bool> found_inf;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        if (written_by(event, input)) {
            scaler = input.storage;
            if (scanner_.measures(input)) scale = scanner_.health(input).absmax;
            continue;
        }
        found.insert(input.storage);
        lineage_.ancestors(input.storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
            found.insert(record.storage);
            return distance < kMostAdded;
        });
        if (scanner_.measures(input)) found_inf = scanner_.health(input).absmax != 0;
    }
    if (scalers_.size() >= kMaxScalers && scalers_.count(scaler) == 0)
        forget_coldest(scalers_, [](const Scaler& other) { return other.last; });
    scalers_[scaler].last = ++updates_;
    ScalerHistory& history = scalers_[scaler].history;
    const bool alone = scalers_.size() == 1;
    for (auto look = looks_.begin(); look != looks_.end();) {
        const bool mine = alone || found.count(look->first) != 0;
        if (mine) history.looked(look->second);
        look = mine ? looks_.erase(look) : std::next(look);
    }
    // By name: memory of what was found is used again, maybe by another scaler.
    for (PendingEscape& p : pending_.of(PendingReason::Scaler)) {
        if (p.scaler != nullptr || !(alone || found.count(p.found) != 0)) continue;
        p.scaler = scaler;
    }
    const bool skipped = found_inf.value_or(history.bad());
    history.updated(skipped, scale);
    if (skipped) {
        ++skips_;
        if (skipped_steps_.size() < kMostSteps) skipped_steps_.push_back(step);
    }
    if (!skipped)
        std::erase_if(pending_.of(PendingReason::Scaler), [&](const PendingEscape& p) { return p.scaler == scaler; });
    if (history.is_used_up()) {
        give_up(scaler,
                "the loss scaler is down to " + number(scale, 4) + ", it skipped " + std::to_string(history.skipped()) +
                    " of " + std::to_string(history.steps()) + " steps",
                outcome, true);
    } else if (history.is_stuck()) {
        give_up(scaler,
                "the loss scaler skipped " + std::to_string(history.skips()) +
                    " steps in a row: at a smaller scale this comes about, too",
                outcome);
    }
}

void LossScalers::give_up(const void* scaler, const std::string& why, Outcome& outcome, bool all) {
    std::erase_if(pending_.of(PendingReason::Scaler), [&](const PendingEscape& p) {
        if (p.scaler != scaler) return false;
        Birth* birth = births_.find(p.birth);
        if (birth == nullptr || birth->escaped) return true;
        if (!all && !comes_at_any_scale(*birth)) return false;
        birth->scaler = false;
        birth->evidence.push_back(why);
        escapes_.report(*birth, p, Severity::Error, outcome);
        return true;
    });
}

void LossScalers::end(Outcome& outcome) {
    for (const auto& [scaler, known] : scalers_) {
        if (known.history.never_stepped())
            give_up(scaler,
                    "the loss scaler skipped all " + std::to_string(known.history.skips()) + " steps of this run",
                    outcome);
    }
    // A scaled loss has gradients in other networks, too, which are not unscaled: they are dropped, however large.
    std::erase_if(pending_.of(PendingReason::Discarded), [&](const PendingEscape& p) {
        const Birth* birth = births_.find(p.birth);
        return escapes_.scaler_seen() && birth != nullptr && birth->phase == Phase::Backward &&
               !comes_at_any_scale(*birth);
    });
}

}  // namespace numsan
