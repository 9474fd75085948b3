// What a watch does about loops over samples, and about what autograd runs for them.
#include "host/perf/slow_thread.h"
#include "host/perf/slow_watch.h"

namespace numsan {

/// An op of the training thread, before the lineage knows of it. `shown`: it is the forward pass's, and runs on the
/// host.
void SlowWatch::look_for_loops(Mine& me, SlowThread& counts, const OpEvent& event, bool shown, int64_t began,
                               int64_t ended) noexcept {
    const SampleLoops::Moment at{OpSeq{ops_.load(std::memory_order_relaxed)}, began, ended - began, own()};
    end_loop(
        me, counts,
        shown ? counts.loops.saw(event, at, lineage_, [&] { return stacks_.capture(); }) : counts.loops.interrupt());
    if (event.graph_task == -1 || event.on_device) return;
    const BackwardCosts::Cost cost = counts.backward.op(steps_.looked(), began, ended);
    if (cost.ns > 0) add(me, SlowCause::SampleLoop, cost.stack, event.op, cost.ns, 0);
}

void SlowWatch::end_loop(Mine& me, SlowThread& counts, const SampleLoops::Seen& loop) noexcept {
    if (loop.what == SampleLoops::Seen::What::None) counts.places.take_back(SlowCause::SampleLoop, loop.stack);
    if (loop.what != SampleLoops::Seen::What::Loop) return;
    add(me, SlowCause::SampleLoop, loop.stack, loop.op, loop.ns, loop.rounds);
    counts.backward.add(loop.first_node, loop.last_node, loop.stack, steps_.looked());
}

}  // namespace numsan
