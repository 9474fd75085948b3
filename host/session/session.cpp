#include "host/session/session.h"

#include <optional>
#include <string>
#include <utility>

#include "host/process/run_facts.h"
#include "host/session/scope_names.h"

namespace numsan {
namespace {

PlaceFinder places_of(const SessionFacts& facts) { return PlaceFinder(facts.torch_root, facts.standard_library); }

}  // namespace

Session::Session(Options options, const Scanner& scanner, StackSource& stacks, SessionFacts facts)
    : options_(std::move(options)),
      stacks_(stacks),
      facts_(std::move(facts)),
      frames_(stacks),
      worker_births_(stacks, places_of(facts_)),
      readings_(scanner),
      parts_(options_, scanner, readings_, stacks, frames_, !facts_.python_version.empty()),
      look_back_(options_.tier, scanner, parts_.lineage, parts_.verdict, parts_.past),
      devices_(options_, scanner, readings_, parts_, *this),
      dumps_(options_),
      signals_(options_.diagnose ? std::make_unique<SignalGatherer>(parts_.lineage, stacks, frames_) : nullptr),
      reporter_(options_, stacks, parts_.contexts.ranges(), places_of(facts_),
                facts_.run ? *facts_.run : run_facts(options_)),
      off_(reporter_),
      counts_(parts_, devices_, stacks, facts_, off_),
      publisher_(parts_.verdict, stacks, reporter_, counts_),
      slow_(options_.perf && options_.record.empty() ? std::make_unique<SlowWatch>(parts_.lineage, stacks, parts_.ops)
                                                     : nullptr) {
    parts_.verdict.set_exchange(facts_.over_notes != nullptr ? facts_.over_notes(worker_births_) : &worker_births_);
    parts_.use(facts_.launches_of, facts_.keep_launches);
    parts_.verdict.set_history(static_cast<size_t>(options_.history));
    if (!options_.dump.empty()) {
        parts_.verdict.show_births();
        reporter_.use(dumps_);
    }
    if (options_.escape == EscapeOption::Any) parts_.verdict.set_strict();
    stacks_.on_own_thread = [] { this_thread().busy = true; };
}

/// What a healthy op needs is one function: its parts are short, and calling them was a tenth of them.
[[gnu::flatten]] void Session::op_end(const OpEvent& event) noexcept {
    ThreadState& thread = this_thread();
    if (thread.busy || !on()) [[unlikely]]
        return;
    try {
        if (event.on_device && op_on_device(thread, event)) [[unlikely]]
            return;
        const OpSeq seq{parts_.ops.fetch_add(1, std::memory_order_relaxed)};
        if (event.output_count > 0) parts_.lineage.prefetch(event.outputs[0].storage);  // most ops have one
        Range ranges[kMaxRanges];
        TierPolicy& tier = look_back_.tier();
        OpLog& log = look_back_.log();
        const bool all = tier.reads_all(parts_.contexts.steps().count()) || !log.usable();
        const OutputSet wanted = all || parts_.verdict.interesting(event, {}) ? OutputSet::all() : tier.reads(event);
        OpTally tally;
        OutputSet bad = parts_.scan.scan(event, seq, wanted, ranges, tally);
        if (bad.any() && !wanted.is_all()) [[unlikely]]
            bad = parts_.scan.scan_any(event, seq, OutputSet::all(), ranges, tally);
        tally.add_unseen(std::exchange(thread.unseen, nullptr));
        if (IntegerWraps::concerns(event)) [[unlikely]]
            parts_.lineage.wraps().look(event, seq);
        parts_.coverage.add(tally);
        OpContext context = parts_.contexts.begin(thread, seq);
        if (event.communicator != nullptr) [[unlikely]]
            context.collective = parts_.collectives.begin(event, seq);
        Operands operands;
        parts_.contexts.trace(event, context, &operands);
        parts_.contexts.follow(thread, event, context);
        ContextBuilder::narrow_state(event, context);
        static constexpr ForwardMap::Made kNone{{}, false};
        std::optional<ForwardMap::Made> noted;
        if (event.forward_sequence != ~uint64_t(0)) noted = parts_.contexts.note_forward(event, context);
        const ForwardMap::Made& made = noted.has_value() ? *noted : kNone;
        if (signals_ != nullptr) [[unlikely]] {
            signals_->op(event, context, ranges, kMaxRanges, thread.accumulates());
            if (signals_->has_warnings()) warn_early();
        }
        context.near_overflow = parts_.judge.near_overflow(event, context, ranges);
        // A look back starts from what is bad, or from a value that is read.
        if ((log.usable() && event.op->op_class == OpClass::HostRead) ||
            parts_.judge.concerns(event, context, bad, ranges)) [[unlikely]] {
            examine(thread, event, context, wanted, bad, ranges, made, operands);
            return;
        }
        parts_.judge.remember(event, context, ranges, thread.accumulates(), &operands);
        if (!wanted.is_all()) [[unlikely]]
            log.add(event, context, made.record, made.node, wanted.others());
    } catch (...) {
        LookBack::unpin(thread, look_back_.log());
        devices_.unpin(thread);
        fail("out of memory or a failure inside op_end");
    }
}

void Session::op_end_measured(const OpEvent& event) noexcept {
    ThreadState& thread = this_thread();
    if (thread.busy || !on()) return;
    slow_->op_ended(event, parts_.contexts.ignores(thread));
    op_end(event);
    slow_->op_taken(event);
    // Where optimizers do not say when they step, an op has ended the step.
    if (std::exchange(thread.ended_step, false)) slow_->steps_are(parts_.contexts.steps().count());
}

/// False: devices cannot be scanned. Who wants the arguments of a birth waits for the device at each op.
[[gnu::noinline]] bool Session::op_on_device(ThreadState& thread, const OpEvent& event) {
    if (!dumps_.active() && breaks_ == nullptr) return devices_.op(thread, event);
    std::optional<OpOutcomeHere> done;
    if (!devices_.op(thread, event, done)) return false;
    if (!done) return true;
    Outcome outcome;
    outcome.born = done->born;
    if (const ThreadState::Node* node = thread.node()) done->context.node = node->name;
    if (!outcome.born.empty()) dumps_.keep(outcome.born, event, done->context);
    if (breaks_ != nullptr) breaks_->born(thread, event, done->context, outcome);
    devices_.kept(*done);
    return true;
}

/// An op about which something may matter: seldom.
[[gnu::noinline, gnu::cold]] void Session::examine(ThreadState& thread, const OpEvent& event, OpContext& context,
                                                   OutputSet wanted, OutputSet bad, const Range* ranges,
                                                   const ForwardMap::Made& made, const Operands& operands) {
    Outcome outcome;
    OpLog& log = look_back_.log();
    if (bad.any()) devices_.settle();
    if (log.usable()) look_back_.look_behind(event, bad, context.step, outcome);
    outcome.born.clear();  // those are ops of the past
    if (!parts_.judge.judge(event, context, bad, ranges, made, thread.accumulates(), outcome, &operands) &&
        !wanted.is_all())
        log.add(event, context, made.record, made.node, wanted.others());
    if (!outcome.born.empty()) dumps_.keep(outcome.born, event, context);
    if (breaks_ != nullptr) breaks_->born(thread, event, context, outcome);
    publish(outcome);
    LookBack::unpin(thread, log);
}

void Session::publish(const Outcome& outcome) {
    const bool found = publisher_.publish(outcome);
    if (found && breaks_ != nullptr && !finished_.load())
        breaks_->published(this_thread(), outcome, stacks_.is_python() ? stacks_.capture() : 0);
    halt_if(found);
}

void Session::op_failed(const OpEvent& event) noexcept {
    const ThreadState& thread = this_thread();
    if (thread.busy || !on() || !parts_.verdict.interesting(event, {})) return;
    try {
        OpContext context = parts_.contexts.begin(thread, OpSeq{parts_.ops.load(std::memory_order_relaxed)});
        context.stack = stacks_.capture();
        parts_.verdict.op_failed(event, context);
    } catch (...) {
        fail("out of memory or a failure inside op_failed");
    }
}

void Session::node_begin(const NodeEvent& event) noexcept {
    ThreadState& thread = this_thread();
    if (!on()) return;
    thread.begin_node(event);
    if (thread.busy) return;
    parts_.contexts.steps().node(event.variable == nullptr ? nullptr : event.variable->storage);
    parts_.contexts.rounds().backward();
    if (slow_ != nullptr) slow_->node_begins(event);
    if (event.variable == nullptr) return;
    parts_.judge.begin_learning();
    try {
        OpContext context = parts_.contexts.begin(thread, OpSeq{parts_.ops.load(std::memory_order_relaxed)});
        if (context.after_compiled) context.stack = stacks_.capture();
        if (event.variable->device != Device::Cpu && devices_.node(event, context)) return;
        if (signals_ != nullptr) signals_->gradient(event, context);
        for (int32_t i = 0; i < event.input_count; ++i) parts_.lineage.mark_gradient(event.inputs[i].storage);
        if (look_back_.log().usable() && !look_back_.tier().reads_all(context.step)) {
            Outcome outcome;
            look_back_.look_behind(event, context.step, outcome);
            publish(outcome);
        }
        parts_.verdict.node(event, context);
        LookBack::unpin(thread, look_back_.log());
    } catch (...) {
        fail("out of memory or a failure inside node_begin");
    }
}

void Session::node_end() noexcept { this_thread().end_node(); }

void Session::scope_begin(const char* name) noexcept {
    ThreadState& thread = this_thread();
    if (!on() || thread.busy) return;
    if (is_data_loader(name) && ++thread.loader_depth == 1 && slow_ != nullptr) slow_->loader_begins();
    if (is_ignore(name)) ++thread.ignore_depth;
    try {
        if (const std::optional<double> loss = told_loss(name)) parts_.verdict.tell_loss(*loss);
        if (is_zero_grad(name) && !devices_.mark(DeviceEvent::Kind::ZeroGrad)) parts_.verdict.zero_grad();
        if (!is_optimizer_step(name) || ++thread.optimizer_depth > 1) return;
        parts_.contexts.steps().optimizer_begins();
        thread.optimizer_step = {};
        thread.optimizer_step.stack = stacks_.capture();
        if (slow_ != nullptr) slow_->optimizer_begins(thread.optimizer_step.stack);
        if (signals_ != nullptr) signals_->optimizer_step(parts_.contexts.steps().count(), thread.optimizer_step.stack);
        if (devices_.mark(DeviceEvent::Kind::OptimizerBegin)) return;
        Outcome outcome;
        parts_.verdict.optimizer_begin(outcome);
        publish(outcome);
    } catch (...) {
        fail("out of memory or a failure inside scope_begin");
    }
}

void Session::scope_end(const char* name) noexcept {
    ThreadState& thread = this_thread();
    if (thread.busy) return;
    if (is_data_loader(name) && thread.loader_depth > 0 && --thread.loader_depth == 0 && slow_ != nullptr)
        slow_->loader_ends();
    if (is_ignore(name) && thread.ignore_depth > 0) --thread.ignore_depth;
    if (is_optimizer_step(name) && thread.optimizer_depth > 0 && --thread.optimizer_depth == 0)
        end_optimizer_step(thread);
}

void Session::end_optimizer_step(ThreadState& thread) noexcept {
    if (slow_ != nullptr) slow_->optimizer_ends();
    if (on() && !devices_.mark(DeviceEvent::Kind::OptimizerEnd)) name_state();
    // Parameters were read as they were written: nothing bad is left of this step.
    if (look_back_.log().usable()) look_back_.log().clear();
    ContextBuilder& contexts = parts_.contexts;
    try {
        contexts.steps().optimizer_ends(contexts.rounds().ended(thread.optimizer_step));
    } catch (...) {
        contexts.steps().optimizer_ends();
        fail("out of memory at the end of an optimizer's step");
    }
    if (slow_ != nullptr) slow_->steps_are(contexts.steps().count());
    if (on() && signals_ != nullptr && signals_->wants_names(contexts.steps().count())) name_parameters();
    if (on()) publisher_.step_ended();
}

void Session::use(const AdapterApi& adapter) noexcept {
    counts_.use(adapter);
    publisher_.use(adapter);
    dumps_.use(adapter.hold);
    devices_.use(adapter.storages);
    if (look_back_.tier().keeps_log()) look_back_.log().use(adapter.storages);
    if (options_.verbosity < 2 || !uses_record_function(adapter)) return;
    try {
        reporter_.say(
            "operators are seen through record functions, which is slower: the dispatch key is another library's");
    } catch (...) {
        fail("out of memory");
    }
}

void Session::skipped(const char* why) noexcept {
    ThreadState& thread = this_thread();
    if (!thread.busy && thread.unseen == nullptr) thread.unseen = why;
}

void Session::name_state(bool kept) noexcept {
    try {
        halt_if(publisher_.name_state(kept));
    } catch (...) {
        fail("out of memory or a failure while naming state");
    }
}

/// With the option `halt` the first finding that is an error ends the program. `found`: there is a new one.
void Session::halt_if(bool found) {
    // What finish() decides comes here, too.
    if (!found || !options_.halt || finished_.load() || !reporter_.has(Severity::Error)) return;
    reporter_.say("halt=1: stopping at the first error");
    halting_.store(true);
    finish(static_cast<int>(options_.exitcode));
    facts_.leave(static_cast<int>(options_.exitcode));
}

void Session::decide_pending(bool failed) noexcept {
    if (!on()) return;
    devices_.drain();
    name_state(false);
    try {
        halt_if(publisher_.decide_pending(failed, !halting_.load(), finished_.load()));
    } catch (...) {
        fail("out of memory or a failure while deciding what is pending");
    }
}

void Session::begin_report() noexcept {
    try {
        RunSummary run = counts_.now();
        run.lose(
            "the run had not ended when this was written; where nothing else follows it was killed, or ended "
            "without the C library's exit");
        reporter_.begin(run);
    } catch (...) {
        fail("out of memory or a failure while writing the first report");
    }
}

int Session::finish(int status) noexcept {
    if (finished_.exchange(true)) return status;
    publisher_.end_marks();
    counts_.end();
    devices_.begin_end();
    decide_pending(status != 0);
    parts_.contexts.steps().finish();
    try {
        RunSummary run = counts_.now();
        run.ended = now_text();
        run.exit_status = status;
        write_last(std::move(run));
        const bool wanted = (options_.fail_on == FailOn::Error && reporter_.has(Severity::Error)) ||
                            (options_.fail_on == FailOn::Warning && reporter_.has(Severity::Warning));
        if (status == 0 && wanted) return static_cast<int>(options_.exitcode);
    } catch (...) {
        fail("out of memory or a failure while writing the last report");
    }
    return status;
}

void Session::before_fork() noexcept {
    reporter_.lock();
    if (signals_ != nullptr) signals_->lock();
    dumps_.lock();
    devices_.lock();
    parts_.contexts.rounds().lock();
    parts_.contexts.ranges().lock();
    look_back_.log().lock();
    parts_.verdict.lock();
    parts_.collectives.lock();
    if (breaks_ != nullptr) breaks_->lock();
    stacks_.lock();
}

void Session::after_fork_in_parent() noexcept {
    stacks_.unlock();
    if (breaks_ != nullptr) breaks_->unlock();
    parts_.collectives.unlock();
    parts_.verdict.unlock();
    look_back_.log().unlock();
    parts_.contexts.ranges().unlock();
    parts_.contexts.rounds().unlock();
    devices_.unlock();
    dumps_.unlock();
    if (signals_ != nullptr) signals_->unlock();
    reporter_.unlock();
}

void Session::after_fork_in_child() noexcept {
    share_scans(nullptr);  // the threads stayed with the parent
    stacks_.unlock();
    if (breaks_ != nullptr) {
        breaks_->begin_child();
        breaks_->unlock();
    }
    parts_.collectives.unlock();
    parts_.verdict.forget_pending();
    worker_births_.begin_child();
    publisher_.begin_child();
    parts_.verdict.unlock();
    look_back_.log().forget_parents();
    look_back_.log().unlock();
    parts_.contexts.ranges().unlock();
    parts_.contexts.rounds().unlock();
    devices_.begin_child();
    devices_.unlock();
    dumps_.begin_child();
    dumps_.unlock();
    if (slow_ != nullptr) slow_->begin_child();
    if (signals_ != nullptr) {
        signals_->forget();
        signals_->unlock();
    }
    try {
        reporter_.begin_child();
    } catch (...) {
        off_.turn_off();
    }
    reporter_.unlock();
}

}  // namespace numsan
