// Bad gradients that reached a leaf: whether an update takes them up, or the program replaces, cures or drops them.
#include <algorithm>
#include <cstring>

#include "host/ops/op_traits.h"
#include "host/verdict/verdict.h"

namespace numsan {

void Verdict::node(const NodeEvent& event, const OpContext& context) {
    const auto may_hold = [&](const TensorView& gradient) { return ledger_.may_hold(gradient.storage); };
    if (event.variable == nullptr) return;
    const bool waiting = waiting_.load(std::memory_order_relaxed);
    const auto bad = [&](const TensorView& gradient) {
        return scannable(gradient) && scanner_.range(gradient).suspicious;
    };
    const bool unseen = context.after_compiled && std::any_of(event.inputs, event.inputs + event.input_count, bad);
    if (!waiting && !unseen && std::none_of(event.inputs, event.inputs + event.input_count, may_hold)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto of_leaf = [&](const PendingEscape& p) {
        return p.impl == event.variable->impl && p.into == EscapeInto::Gradient;
    };
    discard_gradients([&](const PendingEscape& p) { return of_leaf(p) && p.replaced; });
    for (PendingEscape& p : gradients()) p.replaced = p.replaced || of_leaf(p);
    // Leaves that are made anew in each step, inputs of an attack or of an inversion, leave theirs behind.
    if (gradients().size() >= PendingStore::kMost / 2)
        discard_gradients(
            [&](const PendingEscape& p) { return p.storage != nullptr && p.zeroed && p.step + 1 < context.step; });
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& gradient = event.inputs[i];
        if (!scannable(gradient) || (!unseen && !ledger_.may_hold(gradient.storage))) continue;
        if (unseen && ledger_.find(gradient) == nullptr && bad(gradient)) {
            Kinds made = births_.of_region(event, gradient, context);
            made.since = context.step;
            ledger_.set(gradient, made);
        }
        const Kinds* known = ledger_.find(gradient);
        if (known == nullptr) continue;
        if (known->flushed != 0)
            postpone(known->flushed, EscapeInto::Gradient, event.variable->impl, context, PendingReason::Flushed);
        if (known->finite() || !scanner_.range(gradient).suspicious) continue;
        Kinds here;
        const KindSet kinds = scanner_.kinds(gradient);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) != 0) here.of(kind) = known->of(kind);
        }
        const size_t first = gradients().size();
        postpone(here, EscapeInto::Gradient, event.variable->impl, context, PendingReason::Gradient);
        for (size_t k = first; k < gradients().size(); ++k) {
            gradients()[k].storage = gradient.storage;
            gradients()[k].leaf = event.variable->storage;
        }
        if (first < gradients().size()) waiting_.store(true, std::memory_order_relaxed);
    }
}

/// A gradient is added to what its leaf has, or copied there: what is bad in it goes on, and lies there now.
void Verdict::follow_gradients(const OpEvent& event, const OpContext& context, const TensorView& output,
                               const Kinds& now) {
    if (gradients().empty() || context.node == nullptr || std::strstr(context.node, "AccumulateGrad") == nullptr)
        return;
    for (PendingEscape& p : gradients()) {
        if (p.storage == nullptr || now.finite()) continue;
        const bool read = std::any_of(event.inputs, event.inputs + event.input_count,
                                      [&](const TensorView& input) { return input.storage == p.storage; });
        if (!read && p.storage != output.storage) continue;
        p.storage = output.storage;
        p.replaced = false;
    }
}

/// An optimizer computes something of a bad gradient: more than changing the gradient itself, which may cure it.
void Verdict::read_gradients(const OpEvent& event, const OpContext& context) {
    if (gradients().empty() || !context.in_optimizer || context.node != nullptr) return;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!ledger_.may_hold(input.storage) || written_by(event, input)) continue;
        const auto held = ledger_.entries().find(input.storage);
        if (held == ledger_.entries().end() || held->second.finite()) continue;
        for (PendingEscape& p : gradients()) p.read = p.read || p.storage == input.storage;
    }
}

/// A leaf's new values are bad, or may be. What an optimizer has read of its gradient is in them; only that: it is one
/// of several optimizers, and other leaves may be guarded.
void Verdict::take_gradients(const TensorView& leaf, Outcome& outcome) {
    const auto is_taken = [&](const PendingEscape& p) {
        return p.storage != nullptr && p.read && !p.replaced && (p.impl == leaf.impl || p.leaf == leaf.storage);
    };
    PendingStore::List taken;
    std::copy_if(gradients().begin(), gradients().end(), std::back_inserter(taken), is_taken);
    if (taken.empty()) return;
    for (const PendingEscape& p : taken) {
        const Birth* birth = births_.find(p.birth);
        if (birth != nullptr && !birth->scaler) report_gradient_of(*birth, Severity::Error, outcome);
    }
    std::erase_if(gradients(), is_taken);
    decide(taken, Severity::Error, outcome);
}

/// A birth is about to escape. If it was pending in gradients, the first of them was the first thing that mattered.
void Verdict::report_gradient_of(const Birth& birth, Severity severity, Outcome& outcome) {
    if (birth.escaped) return;
    const auto pending = std::find_if(gradients().begin(), gradients().end(),
                                      [&](const PendingEscape& p) { return p.birth == birth.id && !p.replaced; });
    if (pending != gradients().end()) report(*pending, severity, outcome);
}

/// A parameter is bad that no op was seen to make so, and its last gradient was: a kernel that was not announced made
/// the update.
Verdict::Kinds Verdict::unseen_update(const TensorView& leaf) const {
    Kinds made;
    if (!is_parameter(leaf)) return made;
    for (const PendingEscape& p : gradients()) {
        if (p.storage == nullptr || p.replaced || p.impl != leaf.impl) continue;
        for (const Kind kind : kNonFiniteKinds) {
            if ((scanner_.kinds(leaf) & kind) != 0) made.of(kind) = p.birth;
        }
    }
    return made;
}

/// The end: what an optimizer would have been given next.
void Verdict::decide_gradients(Outcome& outcome) {
    discard_gradients([&](const PendingEscape& p) {
        if (p.storage == nullptr) return false;
        // Which birth it goes back to may have changed: clipping takes in what other gradients hold.
        const auto held = ledger_.entries().find(p.storage);
        const bool bad = held != ledger_.entries().end() && held->second.is_sure();
        // Where updates are made, this one was not: the program saw to that, or has ended before.
        return p.replaced || p.zeroed || !bad || stepped_ || parameters_.is_updated(p.impl);
    });
    decide(pending_.take(PendingReason::Gradient), Severity::Error, outcome);
    waiting_.store(false, std::memory_order_relaxed);
}

template <class Which>
void Verdict::discard_gradients(Which&& which) {
    for (const PendingEscape& p : pending_.take_if(PendingReason::Gradient, which))
        pending_.add(PendingReason::Discarded, p);
}

bool Verdict::has_undecided_gradients() {
    if (!waiting_.load(std::memory_order_relaxed)) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(gradients().begin(), gradients().end(), [&](const PendingEscape& p) {
        const Birth* birth = births_.find(p.birth);
        return p.storage != nullptr && !p.replaced && !p.zeroed && birth != nullptr && !birth->escaped &&
               !birth->scaler;
    });
}

void Verdict::keep_gradients(const std::map<const void*, std::set<const void*>>& leaves) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (PendingEscape& p : gradients()) {
        const auto leaf = leaves.find(p.impl);
        if (leaf != leaves.end() && leaf->second.count(p.storage) == 0) p.replaced = true;
    }
}

/// By one optimizer, of its own leaves: which they are is not said. So nothing is let go of until the next one, and
/// what another optimizer reads before counts.
void Verdict::zero_grad() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (PendingEscape& p : gradients()) p.zeroed = true;
}

}  // namespace numsan
