#include "interpose/runtime/attach.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "host/options/options.h"
#include "host/record/recorder.h"
#include "host/scan/cpu_scanner.h"
#include "host/session/session.h"
#include "host/stacks/native_stacks.h"
#include "interpose/debugger/break_stops.h"
#include "interpose/nvtx/range_watch.h"
#include "interpose/nvtx/tool_marks.h"
#include "interpose/python/api/api.h"
#include "interpose/python/api/gate.h"
#include "interpose/python/at_exit.h"
#include "interpose/python/compiled_regions.h"
#include "interpose/python/distributed.h"
#include "interpose/python/frames.h"
#include "interpose/python/higher_order_ops.h"
#include "interpose/python/job_store.h"
#include "interpose/python/names/kept_sources.h"
#include "interpose/python/standard_library.h"
#include "interpose/runtime/adapter_loader.h"
#include "interpose/runtime/attach_cuda.h"
#include "interpose/runtime/device_access.h"
#include "interpose/runtime/finding_mark.h"
#include "interpose/runtime/leave.h"
#include "interpose/runtime/op_kernels.h"
#include "interpose/runtime/process_options.h"

namespace numsan {
namespace {

// Made once, never destroyed: threads of the program may be inside them when the process ends.
Session* g_session = nullptr;
const AdapterApi* g_adapter = nullptr;
const std::string* g_adapter_origin = nullptr;  ///< what adapter_origin() says, once there is an adapter
Recorder* g_recorder = nullptr;                 ///< null: `record` is not set
const CoreApi* g_recorded_core = nullptr;       ///< with a recorder

ForeignMemory g_foreign_memory;

/// An op on a backend that is not in CUDA memory has no queue that the session could use.
void op_end(const OpEvent* event) {
    if (!event->on_device || g_foreign_memory.leaves_to_cuda(*event)) return g_session->op_end(*event);
    OpEvent foreign = *event;
    foreign.queue = DeviceQueue{nullptr, event->queue.device, false};
    g_session->op_end(foreign);
}

void op_end_measured(const OpEvent* event) {
    if (!event->on_device || g_foreign_memory.leaves_to_cuda(*event)) return g_session->op_end_measured(*event);
    OpEvent foreign = *event;
    foreign.queue = DeviceQueue{nullptr, event->queue.device, false};
    g_session->op_end_measured(foreign);
}

void node_begin(const NodeEvent* event) {
    if (!event->queue.known || g_foreign_memory.leaves_to_cuda(*event->variable)) {
        return g_session->node_begin(*event);
    }
    NodeEvent foreign = *event;
    foreign.queue.known = false;
    g_session->node_begin(foreign);
}

int (*g_stub_replace)(const numsan_torch_calls* ours, numsan_torch_calls* theirs) = nullptr;

bool replace_torch_calls(const TorchCalls& ours, TorchCalls& theirs) {
    const numsan_torch_calls wanted{ours.node_callbacks, ours.scope_callbacks, ours.accumulate, nullptr};
    numsan_torch_calls own{};
    if (g_stub_replace == nullptr || g_stub_replace(&wanted, &own) == 0) return false;
    theirs = {own.node_callbacks, own.scope_callbacks, own.accumulate, own.accumulate_seen};
    return true;
}

CoreApi g_core = {
    kAdapterAbi,
    op_end,
    [](const OpEvent* event) { g_session->op_failed(*event); },
    node_begin,
    [] { g_session->node_end(); },
    [](const char* name) { g_session->scope_begin(name); },
    [](const char* name) { g_session->scope_end(name); },
    [](const void* storage) { g_session->before_write(storage); },
    [] { g_session->before_wait(); },
    [](const char* why) { g_session->skipped(why); },
    [](const char* why) { g_session->fail(why); },
    replace_torch_calls,
};

void (*g_set_exit_status)(int status) = nullptr;

void on_process_exit(int status, void*) {
    const int wanted = g_recorder != nullptr ? g_recorder->finish(status) : g_session->finish(status);
    if (wanted != status) g_set_exit_status(wanted);
}

#ifdef NUMSAN_BENCH
/// Separates what the hook costs from what the scan costs: finds every tensor healthy without reading it.
class NoScanner final : public Scanner {
    Range range(const TensorView&) const noexcept override { return {0, ~uint64_t(0), false}; }
    Health health(const TensorView&) const noexcept override { return {}; }
};
#endif

const Scanner& scanner() {
#ifdef NUMSAN_BENCH
    if (secure_getenv("NUMSAN_BENCH_NO_SCAN") != nullptr) return *new NoScanner;
#endif
    return *new CpuScanner;
}

const Scanner* g_scanner = nullptr;

/// Asks nothing that a recording would have to answer.
KindSet bad_kinds(const TensorView& tensor) {
    if (!g_session->looks() || !scannable(tensor)) return 0;
    const ShareWork share = g_adapter != nullptr ? g_adapter->share : nullptr;
    return range_of(*g_scanner, tensor, share).suspicious ? g_scanner->kinds(tensor) : KindSet(0);
}

void range(RangeEvent::Kind kind, uint64_t key, const char* name = "", bool ignored = false) {
    const RangeEvent event{kind, ignored, key, name};
    g_recorder != nullptr ? g_recorder->range(event) : g_session->range(event);
}

const RangeListener g_ranges = {
    [](uint64_t domain, const char* name, bool ignored) { range(RangeEvent::Kind::Push, domain, name, ignored); },
    [](uint64_t domain) { range(RangeEvent::Kind::Pop, domain); },
    [](uint64_t id, const char* name, bool ignored) { range(RangeEvent::Kind::Start, id, name, ignored); },
    [](uint64_t id) { range(RangeEvent::Kind::Stop, id); },
};

void before_fork() {
    if (g_recorder != nullptr) g_recorder->before_fork();
    g_session->before_fork();
    lock_thread_states();
}

void after_fork_in_parent() {
    unlock_thread_states();
    g_session->after_fork_in_parent();
    if (g_recorder != nullptr) g_recorder->after_fork_in_parent();
}

void after_fork_in_child() {
    unlock_thread_states();
    python_access().reset();
    g_session->after_fork_in_child();
    if (g_recorder != nullptr) g_recorder->after_fork_in_child();
}

void decide_pending(bool raised) {
    if (g_recorder != nullptr) return g_recorder->decide_pending(raised);
    g_session->decide_pending(raised);
}

/// Before the session is made; null: there is nothing to record, or no file to record into.
Recorder* start_recorder(const Options& options, SessionFacts& facts) {
    if (options.record.empty()) return nullptr;
    facts.run = run_facts(options);
    std::string why;
    Recorder* made = Recorder::start(options, *facts.run, why);
    if (made == nullptr) say(why.c_str());
    return made;
}

void make_session(const Options& options, StackSource& stacks, SessionFacts facts) {
    g_recorder = start_recorder(options, facts);
    g_scanner = &scanner();
    if (g_recorder == nullptr) {
        if (options.cupti == Cupti::On) add_op_kernels(facts);
        g_session = new Session(options, *g_scanner, stacks, std::move(facts));
        g_session->use_devices(make_device_scanner);
        g_session->use_coverage(add_launches);
        g_session->use_rank(rank_by_python);
        if (options.announce) g_session->use_job(job_store_by_python());
        return;
    }
    // A recording ends at the first op on a device.
    Recorder& r = *g_recorder;
    g_recorded_core = &r.over(g_core);
    r.over(facts);
    g_session = new Session(options, r.over(*g_scanner), r.over(stacks), facts);
    g_session->use_devices(r.over(make_device_scanner));
    g_session->use_coverage(r.over(add_launches));
    g_session->use_rank(r.over(rank_by_python));
    r.begin(*g_session, facts, options);
}

}  // namespace

const char* adapter_origin() noexcept { return g_adapter_origin != nullptr ? g_adapter_origin->c_str() : ""; }

void Front::scope(const char* name, bool begins) noexcept {
    if (g_adapter == nullptr) return;
    const CoreApi& core = g_recorder != nullptr ? *g_recorded_core : g_core;
    begins ? core.scope_begin(name) : core.scope_end(name);
}

void Front::decide() noexcept {
    if (g_adapter != nullptr) decide_pending(false);
}

bool Front::report(std::string& text) {
    if (g_adapter == nullptr) return false;
    text = g_session->reporter().json();
    return true;
}

bool attach(const numsan_stub_api& stub) {
    static bool attached = false;
    if (attached) return g_session != nullptr;
    attached = true;
    const Options& options = process_options();
    if (options.tier == Tier::Off) return false;
    framework_attaches();

    SessionFacts facts;
    facts.leave = leave_program;
    StackSource* stacks = nullptr;
    std::string stack_mode = "native frames";
    const PythonApi* python = python_api();
    if (python != nullptr && python_usable(*python)) {
        auto* frames = new PythonStacks;
        frames->watch_codes();
        const std::string version = python->Py_GetVersion();
        facts.standard_library = standard_library(*python);
        facts.python_version = version.substr(0, version.find(' '));
        facts.python_path = interpreter_path(*python);
        const char* const modes[] = {"python frames in memory", "python's interface", "nothing"};
        stack_mode = modes[static_cast<int>(frames->mode())];
        if (frames->mode() == PythonStacks::Mode::None) facts.blind_spots.push_back("python lines: " + frames->why());
        stacks = frames;
    } else {
        stacks = new NativeStacks;
        if (!NativeStacks::has_lines())
            facts.blind_spots.push_back("source lines of native frames: libdw is not installed");
    }
    const TorchInstall torch = describe_torch(find_loaded_torch());
    facts.torch_version = torch.version;
    facts.torch_root = torch.root;
    const bool has_python = python != nullptr && python_usable(*python);
    const bool breaks = options.break_at && has_python;
    g_core.held_bytes = options.dump.empty() && !breaks ? 0 : options.dump_limit;
    if (g_core.held_bytes > 0) {
        g_core.read_device = [](const DeviceQueue& queue, const void* from, int64_t bytes, void* to) {
            return g_session->read_device(queue, from, bytes, to);
        };
    }
    if (breaks) announce_break_stops(g_core);
    // A debugger would stop in ops that the program does not call itself.
    if (options.regions && has_python && !breaks) g_core.bad_kinds = bad_kinds;
    Options used = options;
    used.break_at = breaks;  // without Python nothing stops, and no device is waited for
    make_session(used, *stacks, facts);
    if (g_session->measures()) {
        g_core.op_begin = [] { g_session->op_begin(); };
        g_core.op_end = op_end_measured;
    }
    if (options.cupti == Cupti::On && g_recorder == nullptr) watch_op_kernels(g_core);
    if (!options.kernels.empty()) say("kernels=PATH has no effect: it is for CUDA programs without torch");
    if (options.break_at && !has_python) say("break=1 has no effect: there is no Python in this program");
    if (breaks && !start_break_stops(*python, *g_session, *stacks, facts, stub.lib_dir))
        say("break=1 has no effect: the interpreter did not run what it needs");

    AdapterLoadResult result;
    g_stub_replace = stub.replace_torch_calls;
    g_adapter = load_torch_adapter(g_recorder != nullptr ? *g_recorded_core : g_core, stub.lib_dir, say, result);
    if (g_adapter == nullptr) return false;
    use_in_break_stops(*g_adapter);
    const char* const origin = result.prebuilt ? "prebuilt" : result.built ? "compiled" : "cached";
    g_adapter_origin = new std::string(std::string(origin) + "|" + result.adapter_path);
    if (g_recorder != nullptr) {
        g_recorder->use(*g_adapter);  // it scans on one thread
    } else {
        g_session->use(*g_adapter);
        g_session->share_scans(g_adapter->share);
    }
    g_session->reporter().say("debug: torch " + result.torch_version + " in " + result.torch_root + "; operators by " +
                                  g_adapter->hook + "; stacks by " + stack_mode + "; adapter " + origin + ", " +
                                  result.adapter_path,
                              Level::Debug);
    stub.set_thread_start(g_adapter->thread_start);
    // A recorder's lock is held while a finding is published: the tool is not called then.
    if (g_recorder == nullptr && has_marking_tool()) g_session->use_marks(mark_finding);
    stub.set_nvtx_watch([](numsan_nvtx_export_fn table) { return watch_nvtx(table, g_ranges) ? 1 : 0; });
    g_set_exit_status = stub.set_exit_status;
    on_exit(on_process_exit, nullptr);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    // A forked process that ends as such processes do, by _exit(), would be taken for one that was killed.
    if (getpid() == stub.first_process) g_session->begin_report();
    const bool running = python != nullptr && python_usable(*python);
    // A key that another library holds is in no thread's set.
    if (running && std::strcmp(g_adapter->hook, "fallback") == 0) pass_higher_order_ops(*python);
    if (running && g_core.bad_kinds != nullptr) look_into_compiled_regions(*python);
    if (running) remember_main_code(*python);
    if (running) call_before_python_ends(*python, decide_pending);
    return true;
}

}  // namespace numsan
