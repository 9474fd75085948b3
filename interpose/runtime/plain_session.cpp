#include "interpose/runtime/plain_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cuda/cuda_device_scanner.h"
#include "host/log/log.h"
#include "host/options/one_line.h"
#include "host/scan/cpu_scanner.h"
#include "interpose/runtime/device_access.h"
#include "interpose/runtime/op_kernels.h"

namespace numsan {
namespace {

SessionFacts facts_of() {
    SessionFacts facts;
    add_op_kernels(facts);
    if (!NativeStacks::has_lines())
        facts.blind_spots.push_back("source lines of native frames: libdw is not installed");
    return facts;
}

/// Numbers that are small or large for their type are a training's concern, as are its steps; of a kernel's arguments
/// no more is known than buffers.
Options options_of(Options options) {
    options.underflow = options.diagnose = options.perf = options.break_at = false;
    options.headroom = options.budget = 0;
    options.tier = Tier::Full;
    options.dump.clear();
    options.record.clear();
    return options;
}

/// Options that were given, and that nothing comes of.
std::string without_effect(const Options& options) {
    std::string all;
    const auto add = [&](bool given, const char* name) {
        if (given) all += (all.empty() ? "" : ", ") + std::string(name);
    };
    add(options.diagnose, "diagnose");
    add(options.perf, "perf");
    add(options.break_at, "break");
    add(!options.dump.empty(), "dump");
    add(!options.record.empty(), "record");
    return all;
}

/// What is wrong with it is said on stderr, as complaints about options are.
KernelManifest manifest_of(const Options& options) {
    std::vector<std::string> complaints;
    KernelManifest manifest = KernelManifest::read(options.kernels, complaints);
    if (manifest.size() > 0 && !can_read_arguments()) {
        complaints.push_back(
            "kernels: this system lets no process read its own memory by process_vm_readv; no kernel is "
            "described");
        manifest = {};
    }
    for (const std::string& complaint : complaints) stderr_log().line(Level::Always, complaint);
    return manifest;
}

bool goes_into_a_graph(void* stream) {
#ifdef NUMSAN_CUDA
    return is_captured(stream);
#else
    return false;
#endif
}

/// A library may use another device than the thread does: then that one's primary context is meant.
void find_device([[maybe_unused]] DeviceQueue& queue) {
#ifdef NUMSAN_CUDA
    if (queue.device >= 0 && queue.device == device_of_thread()) queue.device = -1;
#endif
}

SeenLaunch seen(const WatchedLaunch& launch) {
    return {launch.symbol, launch.arguments, DeviceQueue{launch.stream, -1, true}, goes_into_a_graph(launch.stream),
            launch.launches};
}

std::string launches(int64_t count) { return std::to_string(count) + (count == 1 ? " launch" : " launches"); }

}  // namespace

PlainSession::PlainSession(const Options& options, void (*coverage)(RunSummary&))
    : session_(options_of(options), *new CpuScanner, stacks_, facts_of()),
      events_(*this, manifest_of(options), stub_parameters) {
    session_.use_devices(make_device_scanner);
    session_.use_coverage(coverage);
    if (const std::string none = without_effect(options); !none.empty())
        session_.reporter().say("no effect in a CUDA program without torch: " + none);
}

void PlainSession::ignore(bool begins) noexcept {
    constexpr const char* kIgnore = "numsan:ignore";
    begins ? session_.scope_begin(kIgnore) : session_.scope_end(kIgnore);
}

void PlainSession::before_launch(const WatchedLaunch& launch) noexcept {
    if (!inside_library_call()) events_.before_launch(seen(launch));
}

void PlainSession::after_launch(const WatchedLaunch& launch) noexcept {
    if (!inside_library_call()) events_.after_launch(seen(launch));
}

void PlainSession::after_other_launch() noexcept {
    if (!inside_library_call()) events_.after_unknown_launch();
}

void PlainSession::before_call(LibraryCall& call) noexcept {
    if (!launch_watch().watching()) return;
    const OwnCalls own;
    find_device(call.queue);
    call.captured = goes_into_a_graph(call.queue.stream);
    events_.before_call(call);
    call.launches.first = launch_watch().next_launch();
    call.looked_at = true;
}

void PlainSession::after_call(LibraryCall& call, bool made) noexcept {
    if (!call.looked_at || !launch_watch().watching()) return;
    const OwnCalls own;
    call.launches = launch_watch().since(call.launches.first);
    if (made)
        events_.after_call(call);
    else if (!call.launches.empty())
        events_.after_unknown_launch();
}

void PlainSession::memory_call(const cupti::MemoryCall& call, const char* name) noexcept {
    using What = cupti::MemoryCall::What;
    if (inside_library_call() && call.what != What::Allocate && call.what != What::Free) return;
    switch (call.what) {
        case What::Allocate: return events_.allocated(call.address, call.bytes, call.managed);
        case What::Free: return events_.freed(call.address);
        case What::Set: return events_.written(call.address);
        case What::Copy:
            if (goes_into_a_graph(call.stream)) return;  // the graph is one that says nothing
            return events_.copied(name, call.address, call.from, call.bytes, DeviceQueue{call.stream, -1, true});
        case What::Other: return events_.after_unknown_launch();
    }
}

void PlainSession::add_coverage(RunSummary& run) const {
    const KernelEvents::Counts counts = events_.counts();
    if (counts.partly > 0)
        run.blind_spots.push_back("what kernels write through arguments of no type of numbers: " +
                                  launches(counts.partly) + " looked at in part");
    if (counts.captured > 0)
        run.lose("kernels in CUDA graphs: " + launches(counts.captured) +
                 " not looked at when the graph was made, nor "
                 "when it ran");
    if (counts.unexplained > 0)
        run.lose("calls of libraries that read what cannot be looked at: " + std::to_string(counts.unexplained) +
                 " of which nothing is told");
    for (const auto& [call, count] : counts.unseen_calls)
        run.lose("calls of `" + call.first + "`: " + std::to_string(count) + " not looked at, as " + call.second);
    if (counts.unread > 0)
        run.blind_spots.push_back("debug information: not read for " + std::to_string(counts.unread) +
                                  (counts.unread == 1 ? " kernel" : " kernels") +
                                  ", as that of others had taken 2 seconds");
    for (const auto& [symbol, why] : counts.unmet)
        run.blind_spots.push_back("kernels: no kernel was launched that is " + quoted(symbol) +
                                  (why.empty() ? "" : " as it is described: " + why));
    if (counts.elsewhere > 0)
        run.lose("memory whose allocation was not seen, or of more than a GB: " + launches(counts.elsewhere) +
                 " that write there not looked at");
    int64_t unseen = 0, of_most = 0;
    std::string most;
    for (const auto& [kernel, count] : counts.unseen) {
        unseen += count;
        if (count > of_most) most = kernel;
        of_most = std::max(of_most, count);
    }
    if (unseen > 0)
        run.lose("kernels whose names and debug information (-g) do not say what they write: " + launches(unseen) +
                 " not looked at, most of `" + most + "`");
}

}  // namespace numsan
