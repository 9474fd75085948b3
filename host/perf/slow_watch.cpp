#include "host/perf/slow_watch.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "host/ops/operands.h"
#include "host/perf/device_calls.h"
#include "host/perf/slow_thread.h"
#include "host/perf/slow_words.h"

namespace numsan {
namespace {

constexpr int64_t kManySmallOps = 32;
/// Set by hand: some ten times what Python takes from one op to the next.
constexpr int64_t kLeastPauseNs = 100'000;
/// Set by hand: more ops after a step's end are a loop, which a busy machine interrupts anywhere.
constexpr int64_t kPausesBefore = 32;
constexpr int kMostThreads = 64;

bool is_wide(const TensorView& tensor) {
    return (tensor.flags & (kScannable | kLater)) != 0 &&
           (tensor.dtype == DType::Float64 || tensor.dtype == DType::Complex128);
}

/// An optimizer computes with gradients off; what runs inside of its `step` with them on, or in a backward pass, is a
/// closure's.
bool is_closures(const OpEvent& event) { return event.grad_enabled || event.graph_task != -1; }

bool any_parameter(const OpEvent& event) {
    return std::any_of(event.inputs, event.inputs + event.input_count, is_parameter);
}

}  // namespace

/// Of the calling thread. Trivially destructible.
struct SlowWatch::Mine {
    uint64_t owner;      ///< SlowWatch::id_
    SlowThread* counts;  ///< null: its ops are not measured
    bool refused;        ///< there is no room for its counts
    int64_t begin;       ///< of the op that runs; 0: not looked at
    int64_t end;         ///< of the op that the session is hearing of
    int64_t took;
    bool next_waits;  ///< the op that is about to begin
    bool waits;
    bool shows_repeated;  ///< the op was shown to RepeatedWork
    bool behind_copy;     ///< the last op on a device that computed was a small copy to it
    // From the end of a step to the first op that reads a parameter.
    int64_t between_from;  ///< when the thread was last seen to be busy; 0: that is over
    int64_t between_own;
    int64_t between_ns;
    int64_t between_ops;  ///< so far
    int64_t between_longest;
    StackId between_stack;
    // Inside of the loader and the optimizer.
    int64_t loader_from;
    int64_t loader_own;
    StackId loader_stack;
    int64_t optimizer_from;
    int64_t optimizer_own;
    int64_t optimizer_ops;
    int64_t optimizer_small;
    int64_t optimizer_large_ns;  ///< of the other ops
    bool optimizer_closure;      ///< a closure ran, whose time is not the optimizer's
    StackId optimizer_stack;
    // The first op of the step that wrote float64.
    int64_t float64_step;
    StackId float64_stack;
};

int64_t SlowWatch::steady_ns() noexcept {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

SlowWatch::SlowWatch(const Lineage& lineage, StackSource& stacks, const std::atomic<int64_t>& ops, Clock clock)
    : lineage_(lineage), stacks_(stacks), ops_(ops), clock_(clock) {
    static std::atomic<uint64_t> made{0};
    id_ = made.fetch_add(1, std::memory_order_relaxed) + 1;
}

SlowWatch::~SlowWatch() { drop_threads(); }

void SlowWatch::drop_threads() noexcept {
    SlowThread* one = threads_.exchange(nullptr, std::memory_order_acquire);
    while (one != nullptr) delete std::exchange(one, one->next);
}

SlowWatch::Mine& SlowWatch::mine() const noexcept {
    static thread_local constinit Mine of_thread{};
    if (of_thread.owner != id_) {
        of_thread = Mine{};
        of_thread.owner = id_;
        of_thread.float64_step = -1;
    }
    return of_thread;
}

/// Only threads that train or run autograd have counts.
SlowThread* SlowWatch::thread(Mine& me) noexcept {
    if (me.counts != nullptr || me.refused) return me.counts;
    me.refused = thread_count_.fetch_add(1, std::memory_order_relaxed) >= kMostThreads;
    if (me.refused) return nullptr;
    auto* made = new (std::nothrow) SlowThread;
    if (made == nullptr) return nullptr;
    made->next = threads_.load(std::memory_order_relaxed);
    while (!threads_.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return me.counts = made;
}

void SlowWatch::add(Mine& me, SlowCause cause, StackId stack, const OpInfo* op, int64_t ns, int64_t count) noexcept {
    SlowThread* counts = thread(me);
    if (counts != nullptr && counts->places.add(cause, stack, op, steps_.looked(), ns, count) && stack != 0)
        stacks_.keep(stack);
}

void SlowWatch::waits() noexcept {
    if (steps_.looking()) mine().next_waits = true;
}

/// An op that threw has not ended: what was known of it is forgotten here.
void SlowWatch::note_begin() noexcept {
    Mine& me = mine();
    me.waits = std::exchange(me.next_waits, false);
    me.begin = clock_();
}

SlowThread* SlowWatch::trainers() const noexcept {
    Mine& me = mine();
    return trains(me) ? me.counts : nullptr;
}

bool SlowWatch::belongs(const OpEvent& event, const Mine& me) const noexcept {
    return event.graph_task != -1 || trains(me);
}

void SlowWatch::op_ended(const OpEvent& event, bool ignored) noexcept {
    if (!steps_.looking()) return;
    Mine& me = mine();
    const int64_t now = clock_();
    me.end = belongs(event, me) ? now : 0;  // what runs beside the training takes none of its time
    me.shows_repeated = false;
    const bool waits = std::exchange(me.waits, false);
    const int64_t began = std::exchange(me.begin, 0);
    me.took = began == 0 || event.inner_ops_shown ? 0 : now - began;
    // The scope itself ends by ops of the profiler, with gradients on.
    if (me.optimizer_from != 0 && is_closures(event) && (event.graph_task != -1 || any_parameter(event)))
        me.optimizer_closure = true;
    const bool outside = event.graph_task == -1 || me.optimizer_from != 0;
    look_for_reads(me, trains(me) ? thread(me) : nullptr, event, outside, began != 0 && !ignored);
    if (me.counts != nullptr && trains(me)) {
        const bool updates = me.optimizer_from != 0 && !is_closures(event);
        const bool shown = began != 0 && !ignored && !event.on_device && event.graph_task == -1;
        look_for_loops(me, *me.counts, event, shown && !updates && me.loader_from == 0, now - me.took, now);
    }
    if (began == 0 || ignored || !belongs(event, me)) return;
    if (event.on_device) on_device_.store(true, std::memory_order_relaxed);
    if (me.between_from != 0) look_between(me, event);
    if (event.on_device) {
        const bool to_host = event.op->op_class == OpClass::HostRead ||
                             std::any_of(event.outputs, event.outputs + event.output_count,
                                         [](const TensorView& output) { return output.device == Device::Cpu; });
        if ((waits && to_host) || sizes_by_values(event))
            add(me, SlowCause::HostWait, stacks_.capture(), event.op, me.took);
        if (me.behind_copy && computes_nothing(event)) return;
        // The first copy behind another op may wait until the device has done that.
        const bool behind_copy = std::exchange(me.behind_copy, event.graph_task == -1 && copies_a_little(event));
        if (me.behind_copy) add(me, SlowCause::SmallCopies, stacks_.capture(), event.op, behind_copy ? me.took : 0);
        return;
    }
    look_at(me, event, me.took);
}

/// An op on the host.
void SlowWatch::look_at(Mine& me, const OpEvent& event, int64_t ns) noexcept {
    if (me.optimizer_from != 0 && !is_closures(event)) {
        ++me.optimizer_ops;
        if (ns < SampleLoops::kSmallOpNs && !is_over_lists(event))
            ++me.optimizer_small;
        else
            me.optimizer_large_ns += ns;
        if (me.counts != nullptr) me.counts->tables.update(event, ns, lineage_);
        return;
    }
    see_parameters(event);
    look_for_float64(me, event, ns);
    SlowThread* counts = thread(me);
    if (counts == nullptr) return;
    if (const auto seen = counts->growing.reads(event, lineage_); seen.what == GrowingResults::Seen::What::Grows)
        add(me, SlowCause::Growing, seen.stack, seen.op, ns, 0);
    if (event.graph_task != -1 || me.loader_from != 0) return;
    if (const int64_t both = counts->casts.taken_back(event, ns, lineage_); both > 0)
        add(me, SlowCause::CastBack, stacks_.capture(), event.op, both);
    me.shows_repeated = true;
    const OpSeq first{first_op_.load(std::memory_order_relaxed)};
    const RepeatedWork::Seen seen = counts->repeated.before(event, first, lineage_, [&] { return stacks_.capture(); });
    if (seen.what == RepeatedWork::Seen::What::TakenBack) counts->places.take_back(SlowCause::Repeated, seen.stack);
    look_for_growth(me, event, first);
}

void SlowWatch::op_taken(const OpEvent& event) noexcept {
    if (!steps_.looking()) return;
    Mine& me = mine();
    if (me.end == 0) return;
    if (event.graph_task != -1 && me.counts != nullptr && trains(me))
        look_at_pass(*me.counts, event, me.end - me.took, me.end);
    if (me.shows_repeated) {
        me.counts->casts.remember(event, me.took, lineage_);
        me.counts->growing.joined(event, lineage_);
        me.counts->layouts.remember(event, me.took, lineage_, [&] { return stacks_.capture(); });
        me.counts->trips.remember(event, me.took, lineage_, [&] { return stacks_.capture(); });
        const RepeatedWork::Seen seen = me.counts->repeated.after(event, steps_.looked(), lineage_);
        if (seen.what == RepeatedWork::Seen::What::Repeated)
            add(me, SlowCause::Repeated, me.counts->repeated.stack(), event.op, me.took);
    }
    if (event.graph_task != -1 && !event.on_device && me.counts != nullptr)
        me.counts->tables.after(event, me.took, lineage_);
    const int64_t now = clock_();
    owned(now - std::exchange(me.end, 0));
    if (me.counts != nullptr) me.counts->backward.heard(now);
    if (me.between_from == 0) return;
    me.between_from = now;
    me.between_own = own();
}

/// Counts what the thread was in no op for. A loop of ops has short gaps between them, and where the machine is busy
/// long ones, too, at any of them.
void SlowWatch::pause(Mine& me, int64_t idle) noexcept {
    if (idle < kLeastPauseNs || me.between_ops >= kPausesBefore) return;
    me.between_ns += idle;
    if (idle <= me.between_longest) return;
    me.between_longest = idle;
    me.between_stack = stacks_.capture();
}

/// The step's own work has not begun: the thread was in no op since `between_from`.
void SlowWatch::look_between(Mine& me, const OpEvent& event) noexcept {
    if (trainer_.load(std::memory_order_relaxed) != &me) return;
    const bool begins = event.graph_task != -1 || any_parameter(event);
    const int64_t idle = me.end - me.took - me.between_from - (own() - me.between_own);
    if (me.loader_from == 0) {
        pause(me, idle);
        ++me.between_ops;
    }
    if (!begins) return;
    add(me, SlowCause::Between, me.between_stack, nullptr, me.between_ns);
    me.between_from = 0;
}

void SlowWatch::see_parameters(const OpEvent& event) noexcept {
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (is_parameter(event.inputs[i])) leaf(event.inputs[i]);
    }
}

void SlowWatch::leaf(const TensorView& variable) noexcept {
    std::atomic<bool>& seen = is_wide(variable) ? float64_parameters_ : narrow_parameters_;
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
}

/// The op's own time is that of a reader of its result.
void SlowWatch::look_for_growth(Mine& me, const OpEvent& event, OpSeq first) noexcept {
    const auto seen =
        me.counts->growing.joins(event, first, steps_.looked(), lineage_, [&] { return stacks_.capture(); });
    if (seen.what == GrowingResults::Seen::What::Ended)
        me.counts->places.take_back(SlowCause::Growing, seen.stack);
    else if (seen.what == GrowingResults::Seen::What::Grows)
        add(me, SlowCause::Growing, seen.stack, event.op, 0);
}

/// Single numbers of the program's own are float64 often enough, and make no tensor so.
void SlowWatch::look_for_float64(Mine& me, const OpEvent& event, int64_t ns) noexcept {
    const bool wide = std::any_of(event.outputs, event.outputs + event.output_count,
                                  [](const TensorView& output) { return output.numel > 1 && is_wide(output); });
    if (!wide) return;
    const int64_t step = steps_.looked();
    if (me.float64_step != step) {
        me.float64_step = step;
        me.float64_stack = stacks_.capture();
    }
    add(me, SlowCause::Float64, me.float64_stack, event.op, ns);
}

void SlowWatch::optimizer_begins(StackId stack) noexcept {
    Mine& me = mine();
    me.optimizer_from = 0;
    if (!steps_.looking()) return;
    me.optimizer_from = clock_();
    me.optimizer_own = own();
    me.optimizer_ops = me.optimizer_small = me.optimizer_large_ns = 0;
    me.optimizer_closure = false;
    me.optimizer_stack = stack;
}

void SlowWatch::optimizer_ends() noexcept {
    Mine& me = mine();
    const int64_t from = std::exchange(me.optimizer_from, 0);
    if (from == 0 || me.optimizer_closure || !steps_.looking()) return;
    const int64_t took = clock_() - from - (own() - me.optimizer_own);
    if (me.optimizer_small >= kManySmallOps && 4 * me.optimizer_small >= 3 * me.optimizer_ops)
        add(me, SlowCause::SmallUpdates, me.optimizer_stack, nullptr, took - me.optimizer_large_ns, me.optimizer_small);
    if (me.counts == nullptr) return;
    const TableUpdates::Updates tables = me.counts->tables.done();
    if (tables.tables > 0) add(me, SlowCause::TableUpdates, me.optimizer_stack, nullptr, tables.ns, tables.tables);
}

void SlowWatch::loader_begins() noexcept {
    Mine& me = mine();
    me.loader_from = 0;
    if (!steps_.looking() || trainer_.load(std::memory_order_relaxed) != &me) return;
    me.loader_from = clock_();
    me.loader_own = own();
    me.loader_stack = stacks_.capture();
    if (me.between_from == 0) return;
    pause(me, me.loader_from - me.between_from - (own() - me.between_own));
}

void SlowWatch::loader_ends() noexcept {
    Mine& me = mine();
    const int64_t from = std::exchange(me.loader_from, 0);
    if (from == 0 || !steps_.looking()) return;
    const int64_t now = clock_();
    add(me, SlowCause::LoaderWait, me.loader_stack, nullptr, now - from - (own() - me.loader_own));
    if (me.between_from == 0) return;
    me.between_from = now;
    me.between_own = own();
}

void SlowWatch::steps_are(int64_t ended) noexcept {
    if (ended_.exchange(ended, std::memory_order_relaxed) == ended) return;
    Mine& me = mine();
    const void* nobody = nullptr;
    if (!trainer_.compare_exchange_strong(nobody, &me, std::memory_order_relaxed) && nobody != &me)
        many_trainers_.store(true, std::memory_order_relaxed);
    if (many_trainers_.load(std::memory_order_relaxed)) return steps_.stop();
    if (me.counts != nullptr) end_passes(me, *me.counts);
    if (steps_.looking() && me.counts != nullptr) {
        me.counts->growing.end_step(steps_.looked(),
                                    [&](StackId stack) { me.counts->places.take_back(SlowCause::Growing, stack); });
        end_loop(me, *me.counts, me.counts->loops.interrupt());
        me.counts->backward.end_step();
    }
    const int64_t now = clock_();
    steps_.end(now, own());
    first_op_.store(ops_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    me.between_from = steps_.looking() ? now : 0;
    me.between_own = own();
    me.between_ns = me.between_longest = me.between_ops = 0;
    me.between_stack = 0;
    if (me.counts != nullptr) me.counts->tables.forget();
}

SlowRun SlowWatch::run(const PlaceFinder& places) const {
    SlowCosts costs;
    costs.steps = steps_.looked();
    costs.step_ns = steps_.median_ns();
    costs.float64_is_meant =
        float64_parameters_.load(std::memory_order_relaxed) || !narrow_parameters_.load(std::memory_order_relaxed);
    costs.on_device = on_device_.load(std::memory_order_relaxed);
    costs.gradients_leave = others_read_.load(std::memory_order_relaxed);
    costs.threads_left_out = thread_count_.load(std::memory_order_relaxed) > kMostThreads;
    costs.many_trainers = many_trainers_.load(std::memory_order_relaxed);
    for (const SlowThread* one = threads_.load(std::memory_order_acquire); one != nullptr; one = one->next) {
        one->places.each(costs.steps, [&](SlowCause cause, StackId stack, const SlowPlaces::Cost& cost) {
            costs.add(cause, stack, cost);
        });
    }
    return slow_run(costs, stacks_, places);
}

/// One thread is left.
void SlowWatch::begin_child() noexcept {
    drop_threads();
    thread_count_.store(0, std::memory_order_relaxed);
    trainer_.store(nullptr, std::memory_order_relaxed);
    many_trainers_.store(false, std::memory_order_relaxed);
    for (std::atomic<bool>* fact : {&on_device_, &others_read_, &narrow_parameters_, &float64_parameters_})
        fact->store(false, std::memory_order_relaxed);
    own_ns_.store(0, std::memory_order_relaxed);
    first_op_.store(0, std::memory_order_relaxed);
    steps_.begin_again();
    mine() = Mine{};
}

}  // namespace numsan
