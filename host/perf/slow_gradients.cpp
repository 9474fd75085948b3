// What a watch asks of each op's operands: which gradients and which copies it reads.
#include <algorithm>

#include "host/perf/slow_thread.h"
#include "host/perf/slow_watch.h"

namespace numsan {

/// `counts`: null where the thread does not train. `told`: something may be said of the op.
void SlowWatch::look_for_reads(Mine& me, SlowThread* counts, const OpEvent& event, bool outside, bool told) noexcept {
    if (counts == nullptr) {
        if (std::any_of(event.inputs, event.inputs + event.input_count, [&](const TensorView& input) {
                return (lineage_.flags(input.storage) & Lineage::kGradient) != 0;
            }))
            others_read_.store(true, std::memory_order_relaxed);
        return;
    }
    const OpSeq now{ops_.load(std::memory_order_relaxed)};
    const OpSeq first{first_op_.load(std::memory_order_relaxed)};
    if (const StackId used = counts->passes.reads(event, outside, now, first, lineage_); used != 0)
        counts->places.take_back(SlowCause::DroppedGradient, used);
    if (event.graph_task != -1) return;
    counts->layouts.reads(
        event, lineage_,
        [&](const LayoutCopies::Copy& copy) {
            if (told) add(me, SlowCause::LayoutCopy, copy.stack, copy.op, copy.ns);
        },
        [&](const LayoutCopies::Copy& copy) { counts->places.take_back(SlowCause::LayoutCopy, copy.stack); });
    counts->trips.reads(
        event, first, lineage_,
        [&](const RoundTrips::Trip& trip) {
            if (told) add(me, SlowCause::RoundTrip, trip.stack, trip.op, trip.ns, 2);
        },
        [&](const RoundTrips::Trip& trip) { counts->places.take_back(SlowCause::RoundTrip, trip.stack); });
}

/// An op of autograd, whose number is at most that of the op before the next one.
void SlowWatch::look_at_pass(SlowThread& counts, const OpEvent& event, int64_t began, int64_t ended) noexcept {
    const OpSeq last{ops_.load(std::memory_order_relaxed) - 1};
    counts.passes.op(event, last, began - own(), ended - own(), [&] { return stacks_.capture(); });
}

void SlowWatch::node_begins(const NodeEvent& event) noexcept {
    if (event.variable != nullptr) leaf(*event.variable);
    if (!steps_.looking()) return;
    SlowThread* counts = trainers();
    if (counts == nullptr) return;
    counts->passes.node();
    counts->backward.node(event.sequence);
    if (event.variable == nullptr) return;
    const int64_t from = clock_();
    const OpSeq first{first_op_.load(std::memory_order_relaxed)};
    const TensorView gradient = event.input_count > 0 ? event.inputs[0] : TensorView{};  // sparse
    counts->passes.leaf(*event.variable, gradient, first, lineage_);
    owned(clock_() - from);
}

void SlowWatch::end_passes(Mine& me, SlowThread& counts) noexcept {
    if (!steps_.looking()) return counts.passes.begin_step(false);
    counts.passes.end_step([&](StackId stack, int64_t ns) { add(me, SlowCause::DroppedGradient, stack, nullptr, ns); });
}

}  // namespace numsan
