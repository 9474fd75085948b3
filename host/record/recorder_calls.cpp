// The calls into a session, and those that it makes of the adapter and the process.
#include <unistd.h>

#include <algorithm>

#include "host/record/fields.h"
#include "host/record/recorder.h"

namespace numsan {

void Recorder::take_views(std::vector<RecordedView>& into, const TensorView* views, int32_t count) {
    into.reserve(static_cast<size_t>(count));
    for (int32_t i = 0; i < count; ++i) into.emplace_back(views[i]);
}

uint32_t Recorder::op_number(const OpInfo* op) {
    const auto [it, added] = ops_.try_emplace(op, static_cast<uint32_t>(ops_.size()));
    if (added) {
        writer_.add(RecordKind::Op,
                    RecordedOp{op->name, op->overload, op->op_class, op->mutates, op->id, op->integer_op});
    }
    return it->second;
}

/// Frames are resolved at once: a later version of numsan may want to see those of any op.
void Recorder::know_stack(StackId stack) {
    constexpr size_t kMostKnown = 1 << 18;
    if (stacks_known_.size() >= kMostKnown) stacks_known_.clear();  // those that come again are written again
    if (stack == 0 || !stacks_known_.insert(stack).second) return;
    writer_.add(RecordKind::Stack, RecordedStack{stack, stacks_->in_module(stack), stacks_->resolve(stack)});
}

void Recorder::take_op(const OpEvent& event, StackId stack) {
    take([&](Segment& segment) {
        know_stack(stack);
        segment.stack = stack;
        segment.op = op_number(event.op);
        CallFacts& facts = segment.facts;
        facts.thread = event.thread;
        facts.sequence = event.forward_sequence;
        facts.graph_task = event.graph_task;
        facts.grad_enabled = event.grad_enabled;
        facts.infinite_scalar = event.infinite_scalar;
        facts.inner_ops_shown = event.inner_ops_shown;
        facts.on_device = event.on_device;
        facts.asks_autograd_facts = event.autograd_facts != nullptr;
        if (event.on_device) {
            facts.queue_known = event.queue.known;
            facts.queue_device = event.queue.device;
            facts.queue_stream = event.queue.stream;
        }
        if (const Communicator* group = event.communicator; group != nullptr) {
            facts.group = RecordedGroup{group->name, group->description, group->rank, group->size, {}};
            if (group->ranks != nullptr) facts.group->ranks.assign(group->ranks, group->ranks + group->size);
        }
        facts.scalars.assign(event.scalars, event.scalars + event.scalar_count);
        take_views(segment.inputs, event.inputs, event.input_count);
        take_views(segment.outputs, event.outputs, event.output_count);
    });
}

void Recorder::take_node(const NodeEvent& event, StackId stack) {
    take([&](Segment& segment) {
        know_stack(stack);
        segment.stack = stack;
        segment.text = event.name;
        CallFacts& facts = segment.facts;
        facts.thread = event.forward_thread;
        facts.sequence = event.sequence;
        facts.graph_task = event.graph_task;
        facts.queue_known = event.variable != nullptr && event.queue.known;
        if (facts.queue_known) {
            facts.queue_device = event.queue.device;
            facts.queue_stream = event.queue.stream;
        }
        take_views(segment.inputs, event.inputs, event.input_count);
        if (event.variable != nullptr) take_views(segment.outputs, event.variable, 1);
    });
}

/// The functions that the adapter, the session and the process call.
struct Recorder::Calls {
    static Recorder& recorder() { return *the_recorder; }
    static const CoreApi& core() { return *recorder().core_; }
    static StackId stack() { return recorder().on() ? recorder().stacks_->capture() : 0; }

    static uint32_t autograd_facts(const void* impl, bool may_wait) {
        uint32_t (*const ask)(const void*, bool) = this_thread().autograd_facts;
        Outside outside(recorder(), Head::AutogradFacts);
        const uint32_t answer = ask(impl, may_wait);
        outside.over();
        recorder().take([&](Segment& segment) { segment.autograd_facts = answer; });
        return answer;
    }

    static void op(const OpEvent* event, Head head, void (*next)(const OpEvent*)) {
        const StackId now = stack();
        Turn turn(recorder(), head);
        if (!turn) return next(event);
        turn.has(now);
        turn.has(event->autograd_facts);
        recorder().take_op(*event, now);
        OpEvent seen = *event;
        if (seen.autograd_facts != nullptr) seen.autograd_facts = autograd_facts;
        next(&seen);
    }
    static void op_end(const OpEvent* event) { op(event, Head::OpEnd, core().op_end); }
    static void op_failed(const OpEvent* event) { op(event, Head::OpFailed, core().op_failed); }

    static void node_begin(const NodeEvent* event) {
        const StackId now = stack();
        Turn turn(recorder(), Head::NodeBegin);
        turn.has(now);
        recorder().take_node(*event, now);
        core().node_begin(event);
    }
    static void node_end() {
        const Turn turn(recorder(), Head::NodeEnd);
        core().node_end();
    }
    static void scope_begin(const char* name) {
        const StackId now = stack();
        Turn turn(recorder(), Head::ScopeBegin);
        turn.has(now);
        recorder().take([&](Segment& segment) {
            recorder().know_stack(now);
            segment.stack = now;
            segment.text = name;
        });
        core().scope_begin(name);
    }
    static void scope_end(const char* name) {
        const Turn turn(recorder(), Head::ScopeEnd);
        recorder().take([&](Segment& segment) { segment.text = name; });
        core().scope_end(name);
    }
    static void before_write(const void* storage) {
        const Turn turn(recorder(), Head::BeforeWrite);
        recorder().take([&](Segment& segment) { segment.storage = storage; });
        core().before_write(storage);
    }
    static void before_wait() {
        const Turn turn(recorder(), Head::BeforeWait);
        core().before_wait();
    }
    static void skipped(const char* why) {
        const Turn turn(recorder(), Head::Skipped);
        recorder().take([&](Segment& segment) { segment.text = why; });
        core().skipped(why);
    }
    static void fail(const char* why) {
        const Turn turn(recorder(), Head::Fail);
        recorder().take([&](Segment& segment) { segment.text = why; });
        core().fail(why);
    }

    static const StorageApi& storages() { return recorder().adapter_->storages; }
    static void watch(const void* storage) { storages().watch(storage); }
    static void unwatch(const void* storage) {
        const Outside outside(recorder(), Head::Unwatch);
        storages().unwatch(storage);
    }
    static void unpin(const void* storage) {
        const Outside outside(recorder(), Head::Unpin);
        storages().unpin(storage);
    }
    static bool pin(const void* storage, const void** data, int64_t* bytes) {
        Outside outside(recorder(), Head::Pin);
        const bool lives = storages().pin(storage, data, bytes);
        outside.over();
        recorder().take([&](Segment& segment) {
            segment.pinned = lives;
            segment.data = lives ? *data : nullptr;
            segment.bytes = lives ? *bytes : 0;
        });
        return lives;
    }

    static DeviceScanner* make_device_scanner(const OpEvent& first, std::string& why) {
        DeviceScanner* made = recorder().make_(first, why);
        if (made == nullptr) {
            recorder().take([&](Segment& segment) { segment.answers.no_device = why; });
        } else if (recorder().on() && this_thread().inside) {
            recorder().stop("an operation on a device; recordings are of tensors in the host's memory", true);
        }
        return made;
    }
    static void add_coverage(RunSummary& run) {
        const size_t before = run.blind_spots.size();
        recorder().add_coverage_(run);
        if (run.launches.has_value() || run.blind_spots.size() > before) {
            recorder().take([&](Segment& segment) {
                segment.answers.coverage = CoverageAnswer{
                    run.launches, run.kernels, {run.blind_spots.begin() + ptrdiff_t(before), run.blind_spots.end()}};
            });
        }
        if (!recorder().on() && !recorder().why_stopped_.empty()) run.blind_spots.push_back(recorder().why_stopped_);
    }
    static void leave(int status) {
        recorder().end_segment(Head::None);
        recorder().write_end(status);
        _exit(status);
    }
};

const CoreApi& Recorder::over(const CoreApi& core) {
    static CoreApi recording{kAdapterAbi,        Calls::op_end,      Calls::op_failed, Calls::node_begin,
                             Calls::node_end,    Calls::scope_begin, Calls::scope_end, Calls::before_write,
                             Calls::before_wait, Calls::skipped,     Calls::fail,      core.replace_torch_calls};
    recording.held_bytes = core.held_bytes;
    recording.read_device = core.read_device;
    recording.after_op = core.after_op;
    recording.take_error = core.take_error;
    recording.drop_error = core.drop_error;
    recording.bad_kinds = core.bad_kinds;
    core_ = &core;
    return recording;
}

MakeDeviceScanner Recorder::over(MakeDeviceScanner make) {
    make_ = make;
    return Calls::make_device_scanner;
}

void (*Recorder::over(void (*add_coverage)(RunSummary&)))(RunSummary&) {
    add_coverage_ = add_coverage;
    return Calls::add_coverage;
}

void Recorder::use(const AdapterApi& adapter) {
    adapter_ = &adapter;
    shown_adapter_ = adapter;
    shown_adapter_.storages = {Calls::watch, Calls::unwatch, Calls::pin, Calls::unpin};
    const Turn turn(*this, Head::Use);
    take([&](Segment& segment) { segment.text = adapter.hook; });
    session_->use(shown_adapter_);
}

void Recorder::leave_by_recording(SessionFacts& facts) { facts.leave = Calls::leave; }

}  // namespace numsan
