#include "host/verdict/leaf_gradients.h"

#include <algorithm>
#include <cstring>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {

bool LeafGradients::is_bad(const TensorView& gradient) const {
    return scannable(gradient) && scanner_.range(gradient).suspicious;
}

/// What the leaf had before is replaced, unless what comes now is added to it.
void LeafGradients::replace(const TensorView& leaf, const OpContext& context) {
    if (waiting_.empty()) {
        if (!keys_.empty()) keys_.clear();  // clear() goes through all buckets, of an empty set too
        return;
    }
    if (may_wait(leaf.impl)) {
        const auto of_leaf = [&](const PendingEscape& p) {
            return p.impl == leaf.impl && p.into == EscapeInto::Gradient;
        };
        discard([&](const PendingEscape& p) { return of_leaf(p) && p.replaced; });
        for (PendingEscape& p : waiting_) p.replaced = p.replaced || of_leaf(p);
    }
    // Leaves that are made anew in each step, inputs of an attack or of an inversion, leave theirs behind.
    if (waiting_.size() >= PendingStore::kMost / 2 && cleaned_step_ != context.step) {
        cleaned_step_ = context.step;
        discard([&](const PendingEscape& p) { return p.storage != nullptr && p.zeroed && p.step + 1 < context.step; });
    }
}

void LeafGradients::learn_keys(const PendingEscape& gradient) {
    if (keys_.size() >= 8 * PendingStore::kMost) {  // of memory that gradients had in earlier steps
        keys_.clear();
        for (const PendingEscape& p : waiting_) keys_.insert({p.impl, p.storage, p.leaf});
    }
    keys_.insert({gradient.impl, gradient.storage, gradient.leaf});
}

void LeafGradients::arrive(const NodeEvent& event, const OpContext& context, bool unseen) {
    replace(*event.variable, context);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& gradient = event.inputs[i];
        if (!scannable(gradient) || (!unseen && !ledger_.may_hold(gradient.storage))) continue;
        if (unseen && ledger_.find(gradient) == nullptr && is_bad(gradient)) {
            BirthKinds made = external_.of_region(event, gradient, context);
            made.since = context.step;
            ledger_.set(gradient, made);
        }
        const BirthKinds* known = ledger_.find(gradient);
        if (known == nullptr) continue;
        if (known->flushed != 0) {
            escapes_.postpone(known->flushed, EscapeInto::Gradient, event.variable->impl, context,
                              PendingReason::Flushed);
        }
        BirthKinds here;
        for (const Kind kind : kNonFiniteKinds) {
            const BirthId id = known->of(kind);
            if (id != 0 && !escapes_.has_named(id, EscapeInto::Gradient, event.variable->impl)) here.of(kind) = id;
        }
        if (here.finite() || !scanner_.range(gradient).suspicious) continue;
        const KindSet kinds = scanner_.kinds(gradient);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) here.of(kind) = 0;
        }
        const size_t first = waiting_.size();
        escapes_.postpone(here, EscapeInto::Gradient, event.variable->impl, context, PendingReason::Gradient);
        for (size_t k = first; k < waiting_.size(); ++k) {
            waiting_[k].storage = gradient.storage;
            waiting_[k].leaf = event.variable->storage;
            learn_keys(waiting_[k]);
        }
        if (first < waiting_.size()) any_wait_.store(true, std::memory_order_relaxed);
    }
}

void LeafGradients::follow(const OpEvent& event, const OpContext& context, const TensorView& output,
                           const BirthKinds& now) {
    if (waiting_.empty() || context.node == nullptr || std::strstr(context.node, "AccumulateGrad") == nullptr) return;
    const auto waits = [&](const TensorView& input) { return may_wait(input.storage); };
    const auto* end = event.inputs + event.input_count;
    if (now.finite() || (!may_wait(output.storage) && std::none_of(event.inputs, end, waits))) return;
    for (PendingEscape& p : waiting_) {
        if (p.storage == nullptr) continue;
        const bool read =
            std::any_of(event.inputs, end, [&](const TensorView& input) { return input.storage == p.storage; });
        if (!read && p.storage != output.storage) continue;
        p.storage = output.storage;
        p.replaced = false;
        learn_keys(p);
    }
}

bool LeafGradients::may_concern(const OpEvent& event) const {
    if (waiting_.empty()) return false;
    const auto waits = [&](const TensorView& tensor) { return may_wait(tensor.storage) || may_wait(tensor.impl); };
    return std::any_of(event.inputs, event.inputs + event.input_count, waits) ||
           std::any_of(event.outputs, event.outputs + event.output_count, waits);
}

void LeafGradients::read(const OpEvent& event, const OpContext& context) {
    if (waiting_.empty() || !context.in_optimizer || context.node != nullptr) return;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!may_wait(input.storage) || !ledger_.may_hold(input.storage) || written_by(event, input)) continue;
        const auto held = ledger_.entries().find(input.storage);
        if (held == ledger_.entries().end() || held->second.finite()) continue;
        for (PendingEscape& p : waiting_) p.read = p.read || p.storage == input.storage;
    }
}

void LeafGradients::take(const TensorView& leaf, Outcome& outcome) {
    if (!may_wait(leaf.impl) && !may_wait(leaf.storage)) return;
    const auto is_taken = [&](const PendingEscape& p) {
        return p.storage != nullptr && p.read && !p.replaced && (p.impl == leaf.impl || p.leaf == leaf.storage);
    };
    PendingStore::List taken;
    std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(taken), is_taken);
    if (taken.empty()) return;
    for (const PendingEscape& p : taken) {
        Birth* birth = births_.find(p.birth);
        if (birth != nullptr && !birth->scaler) escapes_.report_gradient_of(*birth, Severity::Error, outcome);
    }
    std::erase_if(waiting_, is_taken);
    escapes_.report_all(taken, Severity::Error, outcome);
}

BirthKinds LeafGradients::unseen_update(const TensorView& leaf) const {
    BirthKinds made;
    if (!is_parameter(leaf) || !may_wait(leaf.impl)) return made;
    for (const PendingEscape& p : waiting_) {
        if (p.storage == nullptr || p.replaced || p.impl != leaf.impl) continue;
        for (const Kind kind : kNonFiniteKinds) {
            if ((scanner_.kinds(leaf) & kind) != 0) made.of(kind) = p.birth;
        }
    }
    return made;
}

void LeafGradients::end(bool stepped, Outcome& outcome) {
    discard([&](const PendingEscape& p) {
        if (p.storage == nullptr) return false;
        // Which birth it goes back to may have changed: clipping takes in what other gradients hold.
        const auto held = ledger_.entries().find(p.storage);
        const bool bad = held != ledger_.entries().end() && held->second.is_sure();
        // Where updates are made, this one was not: the program saw to that, or has ended before.
        return p.replaced || p.zeroed || !bad || stepped || parameters_.is_updated(p.impl);
    });
    escapes_.report_all(pending_.take(PendingReason::Gradient), Severity::Error, outcome);
    any_wait_.store(false, std::memory_order_relaxed);
}

template <class Which>
void LeafGradients::discard(Which&& which) {
    for (const PendingEscape& p : pending_.take_if(PendingReason::Gradient, which))
        pending_.add(PendingReason::Discarded, p);
}

bool LeafGradients::undecided() const {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const PendingEscape& p) {
        const Birth* birth = births_.find(p.birth);
        return p.storage != nullptr && !p.replaced && !p.zeroed && birth != nullptr && !birth->escaped &&
               !birth->scaler;
    });
}

void LeafGradients::keep(const std::map<const void*, std::set<const void*>>& leaves) {
    for (PendingEscape& p : waiting_) {
        const auto leaf = leaves.find(p.impl);
        if (leaf != leaves.end() && leaf->second.count(p.storage) == 0) p.replaced = true;
    }
}

void LeafGradients::zero() {
    for (PendingEscape& p : waiting_) p.zeroed = true;
}

}  // namespace numsan
