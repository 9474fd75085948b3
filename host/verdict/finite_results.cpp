#include "host/verdict/finite_results.h"

#include <algorithm>
#include <optional>
#include <string>

#include "host/base/coldest.h"
#include "host/base/thresholds.h"
#include "host/birth/zeros.h"
#include "host/cause/measure.h"
#include "host/ops/operands.h"
#include "host/track/headroom.h"

namespace numsan {
namespace {

bool is_gradient(const Lineage& lineage, const void* storage) {
    return (lineage.flags(storage) & Lineage::kGradient) != 0;
}

}  // namespace

void FiniteResults::look_at_zeros(const OpEvent& event, const OpContext& context, int32_t index,
                                  const BirthKinds& before, const ForwardRecord& forward) {
    const TensorView& output = event.outputs[index];
    BirthKinds now;
    if (const BirthKinds* entry = ledger_.find(output)) now = *entry;
    const BirthId muted = now.muted;
    const BirthId flushed = now.flushed;
    for (const Kind kind : {kPosInf, kNegInf}) {
        const Birth* birth = store_.find(before.of(kind));
        if (birth == nullptr || birth->intended || birth->escaped || now.muted != 0) continue;
        if (mutes(event, *birth) && scanner_.measures(output) && scanner_.health(output).zero > 0)
            now.muted = birth->id;
    }
    if (before.muted != 0) {
        if (multiplies(event)) {
            const bool gradient = context.node != nullptr || is_gradient(lineage_, output.storage);
            pending_.postpone(store_.find(before.muted),
                              is_parameter(output) ? EscapeInto::Parameter
                              : gradient           ? EscapeInto::Gradient
                                                   : EscapeInto::Loss,
                              output.impl, context, PendingReason::Muted);
        } else if (hands_zeros_on(event) && scanner_.health(output).zero > 0) {
            now.muted = before.muted;
        }
    }
    if (before.flushed != 0) {
        const Health health = scanner_.health(output);
        if (2 * (health.zero + health.subnormal) >= health.elements) now.flushed = before.flushed;
    } else if (context.underflow && looks_for_zeros(context.step)) {
        // In other steps an op comes here for another reason, such as what is remembered of a freed tensor's address.
        look_at_flushed(event, context, index, forward, now);
    }
    const bool parameter = is_parameter(output);
    const bool updated = context.underflow && context.node == nullptr;
    if (updated && (parameter || averages(event, context, output))) {
        if (const std::optional<std::string> evidence =
                lost_updates_.seen_again(event, index, context.step, context.seq)) {
            pending_.postpone(&births_.flushed(event, index, context, forward, Mechanism::PREC, *evidence),
                              parameter ? EscapeInto::Parameter : EscapeInto::Buffer, output.impl, context,
                              PendingReason::Flushed);
        }
    }
    if (now.muted != muted || now.flushed != flushed) ledger_.set(output, now);
}

/// `output`, no parameter itself, is an average that the program keeps of something a parameter is or was: by hand, and
/// not the optimizer's moments, which follow gradients.
bool FiniteResults::averages(const OpEvent& event, const OpContext& context, const TensorView& output) const {
    if ((output.flags & kWritten) == 0 || !context.on_state || context.in_optimizer ||
        is_gradient(lineage_, output.storage))
        return false;
    const auto follows = [&](const TensorView& input) {
        const uint16_t flags = lineage_.flags(input.storage);
        return input.storage != output.storage &&
               (is_parameter(input) || ((flags & Lineage::kState) != 0 && (flags & Lineage::kGradient) == 0));
    };
    return std::any_of(event.inputs, event.inputs + event.input_count, follows);
}

/// Output `index` is finite: was it flushed by this op? A gradient that was is reported at once, as it reaches its
/// parameter; what a forward op flushes only where it does so in another step, too.
void FiniteResults::look_at_flushed(const OpEvent& event, const OpContext& context, int32_t index,
                                    const ForwardRecord& forward, BirthKinds& now) {
    const TensorView& output = event.outputs[index];
    const bool backward = context.node != nullptr;
    const bool gradient = !backward && (output.flags & kWritten) != 0 && is_gradient(lineage_, output.storage);
    const bool result = !backward && context.touched && event.grad_enabled && !context.in_optimizer;
    if (!backward && !gradient && (!result || output.numel < 2)) return;
    const std::optional<std::string> evidence = flushed_share(event, index, scanner_, lineage_);
    if (!evidence) return;
    const Health health = scanner_.health(output);
    const bool subnormal = 2 * health.zero < health.elements;
    if (result && subnormal) return;
    Birth* birth = nullptr;
    if (!backward || subnormal) {
        const OpSite site{event.op, backward ? forward.stack : context.stack};
        const auto seen = flushes_.find(site);
        if (seen == flushes_.end()) {
            if (flushes_.size() >= kMostSites)
                forget_coldest(flushes_, [](const Flush& flush) { return flush.last_seq; });
            birth = &births_.flushed(event, index, context, forward, Mechanism::UDF, *evidence);
            // What becomes of these zeros in this step goes back to them, and is no birth of its own.
            birth->ignored = true;
            flushes_[site] = {birth->id, context.seq};
        } else {
            seen->second.last_seq = context.seq;
            birth = store_.find(seen->second.first);
            if (birth != nullptr && birth->step != context.step && !context.ignored) birth->ignored = false;
        }
    }
    if (birth == nullptr) birth = &births_.flushed(event, index, context, forward, Mechanism::UDF, *evidence);
    if (gradient) {
        pending_.postpone(birth, EscapeInto::Gradient, output.impl, context, PendingReason::Flushed);
    } else {
        now.flushed = birth->id;
    }
}

void FiniteResults::look_at_headroom(const OpEvent& event, const OpContext& context, int32_t index,
                                     const ForwardRecord& forward) {
    if (context.ignored) return;
    const auto known = near_overflows_.find({event.op, context.stack});
    if (known != near_overflows_.end() && known->second.reported) return;
    Mechanism mechanism = Mechanism::PREC;
    const std::optional<Saturation> saturation = saturated(event, index, context.seq, lineage_);
    std::optional<std::string> evidence;
    if (saturation) {
        evidence = saturation->evidence;
    } else if (context.touched) {
        mechanism = Mechanism::OVF;
        evidence = close_to_largest(event, index, context.seq, context.headroom, scanner_, lineage_);
    }
    if (!evidence) {
        if (known != near_overflows_.end() && known->second.scaled) known->second = {};  // the scale has followed
        return;
    }
    if (known == near_overflows_.end() && near_overflows_.size() >= kMostSites)
        forget_coldest(near_overflows_, [](const NearOverflow& other) { return other.last_seq; });
    NearOverflow& site = near_overflows_[{event.op, context.stack}];
    site.last_seq = context.seq;
    site.scaled = saturation && saturation->scaled;
    if (site.last_step != context.step) ++site.steps;
    site.last_step = context.step;
    ++site.looks;
    const int needed = site.scaled ? kScaledSteps : kSteadySteps;
    const bool unstepped = site.steps == 1 && context.step == 0 && site.looks == std::max(needed, kSteadyLooks);
    if (site.steps < needed && !unstepped) return;
    site.reported = site.steps >= needed;
    Birth& birth = births_.near_overflow(event, index, context, forward, mechanism, *evidence);
    birth.evidence.push_back(unstepped ? "so it was " + std::to_string(site.looks) + " times in this run"
                                       : "so it was in " + std::to_string(site.steps) + " steps of this run");
    pending_.postpone(&birth, EscapeInto::Output, event.outputs[index].impl, context,
                      unstepped ? PendingReason::NearLimitUnstepped : PendingReason::NearLimit);
}

}  // namespace numsan
