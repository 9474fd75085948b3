#include "interpose/debugger/break_stops.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/breaks/break_points.h"
#include "host/cause/magnitude_history.h"
#include "host/dump/dump_document.h"
#include "host/event/thread_state.h"
#include "host/finding/place_of.h"
#include "host/report/atomic_file.h"
#include "interpose/python/api/gate.h"
#include "interpose/python/debugger.h"

namespace numsan {
namespace {

struct BreakStops {
    BreakStops(const PythonApi& python, Session& its_session, StackSource& its_stacks, const SessionFacts& facts,
               const Debugger& its_debugger)
        : api(python),
          session(its_session),
          stacks(its_stacks),
          places(facts.torch_root, facts.standard_library),
          breaks(session.verdict(), [this](BirthId birth) { return session.reporter().finding_of(birth); }),
          debugger(its_debugger) {}

    const PythonApi& api;
    Session& session;
    StackSource& stacks;
    const PlaceFinder places;
    BreakPoints breaks;
    const Debugger& debugger;
    const AdapterApi* adapter = nullptr;
};
BreakStops* g_stops = nullptr;

struct Shown;
thread_local constinit const Shown* t_shown = nullptr;

/// What this thread shows its user, while it stops.
struct Shown {
    Shown(const Break& its_due, const Finding& its_finding) : due(its_due), finding(its_finding) { t_shown = this; }
    ~Shown() { t_shown = nullptr; }
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

    const Break& due;
    const Finding& finding;
};

/// On its way out of an operator of this thread.
thread_local constinit RaisedError t_error{};
std::string& error_text() {
    static thread_local std::string text;
    return text;
}

std::string history_of(const void* storage) {
    std::string lines;
    const Lineage& lineage = g_stops->session.lineage();
    for (const PastMagnitude& past : storage_history(storage, lineage)) {
        char value[32] = "none";
        if (past.absmax) std::snprintf(value, sizeof value, "%.9g", *past.absmax);
        lines += std::to_string(past.step) + " " + value + "\n";
    }
    return lines;
}

std::string write_dump(const std::string& path) {
    if (t_shown == nullptr) return "the program has gone on since";
    const Break& due = t_shown->due;
    if (due.held.view() == nullptr) return "what the operator was called with was not kept";
    try {
        const RunSummary run = g_stops->session.reporter().run();
        const DumpContent content{due.held.view(), due.forward.view(), due.node, g_stops->session.options().dump_limit};
        return write_atomically(path, dump_file(content, t_shown->finding, run).parts).value_or("");
    } catch (const std::exception& error) {
        return error.what();
    }
}

const DebuggerHost g_host = {
    history_of,
    [](bool paused) { return std::exchange(this_thread().busy, paused); },
    [](const std::string& place) { g_stops->breaks.again(place); },
    write_dump,
};

/// Where in the thread's stack the program stops: the innermost line that is the program's or one of its libraries'.
void locate(const std::vector<SourceFrame>& stack, const PlaceFinder& places, DebuggerStop& stop) {
    const SourceFrame* at = places.innermost(stack);
    if (at == nullptr && !stack.empty()) at = &stack.front();
    if (at == nullptr) return;
    stop.file = at->file;
    stop.line = at->line;
    stop.frame = static_cast<int>(at - stack.data());
}

std::string place_of(const Finding& finding) {
    if (!finding.location) return finding.op;
    return finding.location->file + ":" + std::to_string(finding.location->line) +
           (finding.phase == Phase::Backward ? " backward" : "");
}

/// Those that are as the op read or left them.
std::vector<const void*> alive(const std::vector<Break::Operand>& operands, bool unwritten_only) {
    std::vector<const void*> tensors;
    for (const Break::Operand& operand : operands) {
        if (!unwritten_only || !operand.written) tensors.push_back(operand.impl);
    }
    return tensors;
}

std::string text_of(const Break& due, const Finding& finding, const Reporter& reporter) {
    const bool known = due.finding.has_value();
    std::string text = known && reporter.prints() ? "" : reporter.text_of(finding, known);
    text += known
                ? "numsan: break=1: stopped where it got into what matters\n"
                : "numsan: break=1: stopped after the operator; it is not known yet whether the value reaches anything "
                  "that matters\n";
    text +=
        "numsan: `continue` goes on, and this line does not stop again; `_numsan` has inputs, outputs, finding, "
        "history(name), health(), try_fix(), again()\n";
    return text;
}

/// What torch is doing is left for the time: see AdapterApi::outside_ops.
void carry_out(BreakStops& stops, Break& due) {
    const InsidePython inside;
    if (!inside || !python_usable(stops.api) || python_access().closed()) return;
    DebuggerStop stop;
    Reporter& reporter = stops.session.reporter();
    std::optional<Finding> finding = due.finding;
    if (!finding) {
        TensorReader reader;
        reader.storage_of = stops.adapter->storage_of;
        reader.gradient_of = stops.adapter->gradient_of;
        reader.sources_of = {due.birth.stack, due.birth.forward_stack};
        finding = reporter.preview(due.birth, stops.stacks, stops.stacks.names(reader));
        if (!finding) return stops.breaks.pass_over(due);
    }
    stop.place = place_of(*finding);
    stop.document = Reporter::document_of(*finding, due.finding.has_value());
    stop.held = due.held.call();
    stop.view = due.held.view();
    DebuggerError error;
    if (!due.raises && !stops.debugger.anybody_there()) {
        stops.breaks.ask_nobody(due);
        if (!due.raises) return;
    }
    if (due.raises) {
        error = stops.debugger.raise(stop);
    } else {
        if (!stops.breaks.stop_at(stop.place, due)) return;
        locate(stops.stacks.resolve(stops.stacks.capture()), stops.places, stop);
        stop.text = text_of(due, *finding, reporter);
        stop.inputs = alive(due.inputs, true);
        stop.outputs = alive(due.outputs, false);
        const auto scales = [](const SourceFrame& frame) { return frame.file.ends_with("/amp/grad_scaler.py"); };
        const std::vector<SourceFrame> stack = stops.stacks.resolve(due.stack);
        stop.scaled = !due.finding && (due.scaled || std::any_of(stack.begin(), stack.end(), scales));
        bool stopped = true;
        const Shown shown(due, *finding);
        error = stops.debugger.stop(stop, stopped);
        if (!stopped) stops.breaks.leave_to_scaler(stop.place, due);
    }
    if (error.type == nullptr) return;
    error_text() = std::move(error.text);
    t_error = {error.type, error.value, error.traceback, error_text().c_str()};
}

struct Work {
    BreakStops& stops;
    Break& due;
};

void carry_out(void* argument) {
    Work& work = *static_cast<Work*>(argument);
    try {
        carry_out(work.stops, work.due);
    } catch (const std::exception&) {
        work.stops.session.fail("out of memory or a failure at a break");
    }
}

void take_up(Break& due) {
    const BusyThread busy;
    Work work{*g_stops, due};
    g_stops->adapter->outside_ops(carry_out, &work);
}

RaisedError g_main_error{};  ///< under the interpreter's lock

int raise_between_bytecodes(void*) {
    const RaisedError error = std::exchange(g_main_error, RaisedError{});
    if (error.type == nullptr) return 0;
    g_stops->api.PyErr_Restore(error.type, error.value, error.traceback);
    return -1;
}

void raise_on_main_thread() {
    const PythonLock lock(g_stops->api);
    if (g_main_error.type != nullptr) return;  // one is on its way
    g_main_error = std::exchange(t_error, RaisedError{});
    g_stops->api.Py_AddPendingCall(raise_between_bytecodes, nullptr);
}

void after_op() {
    ThreadState& thread = this_thread();
    if (thread.due == nullptr || thread.busy || g_stops == nullptr || g_stops->adapter == nullptr) return;
    const std::unique_ptr<Break> due = BreakPoints::take(thread);
    take_up(*due);
    // A record function cannot throw: the main thread raises it as soon as it runs Python code again.
    if (t_error.type != nullptr && uses_record_function(*g_stops->adapter)) raise_on_main_thread();
}

bool take_error(RaisedError& error) {
    if (t_error.type == nullptr) return false;
    error = std::exchange(t_error, RaisedError{});
    return true;
}

void drop_error(RaisedError& error) {
    const InsidePython inside;
    if (!inside || !python_usable(g_stops->api)) return;  // it is leaked into an interpreter that has ended
    DebuggerError held{error.type, error.value, error.traceback, {}};
    g_stops->debugger.drop(held);
}

/// On the main thread, between two bytecodes, with the interpreter's lock.
int take_up_queued(void*) {
    const std::unique_ptr<Break> due = g_stops->breaks.take_queued();
    if (due == nullptr) return 0;
    take_up(*due);
    RaisedError error;
    if (!take_error(error)) return 0;
    g_stops->api.PyErr_Restore(error.type, error.value, error.traceback);
    return -1;
}

void call_main_thread() { g_stops->api.Py_AddPendingCall(take_up_queued, nullptr); }

}  // namespace

void announce_break_stops(CoreApi& core) noexcept {
    core.after_op = after_op;
    core.take_error = take_error;
    core.drop_error = drop_error;
}

bool start_break_stops(const PythonApi& api, Session& session, StackSource& stacks, const SessionFacts& facts,
                       const std::string& libraries) {
    const Debugger* debugger = Debugger::start(api, g_host, libraries + "/replay/replay_dump.py");
    if (debugger == nullptr) return false;
    g_stops = new BreakStops(api, session, stacks, facts, *debugger);
    g_stops->breaks.use(call_main_thread);
    session.use(g_stops->breaks);
    return true;
}

void use_in_break_stops(const AdapterApi& adapter) {
    if (g_stops == nullptr) return;
    g_stops->breaks.use(adapter.hold);
    g_stops->adapter = &adapter;
}

}  // namespace numsan
