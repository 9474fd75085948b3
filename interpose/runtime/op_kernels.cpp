#include "interpose/runtime/op_kernels.h"

#include <algorithm>

#include "interpose/cupti/launch_watch.h"

namespace numsan {
namespace {

constexpr uint64_t kNoLaunch = ~uint64_t(0);

bool g_watches = false;         // written before the first op
void (*g_measure)() = nullptr;  // what was called at the beginning of ops before

/// The number of the first launch of the op that this thread is in.
uint64_t& first_launch() noexcept {
    static thread_local constinit uint64_t first = kNoLaunch;
    return first;
}

void op_begins() noexcept {
    if (g_measure != nullptr) g_measure();
    first_launch() = launch_watch().next_launch();
}

std::vector<KernelLaunch> launches_of(const LaunchSpan& span) {
    std::vector<KernelLaunch> made;
    for (const LoggedLaunch& logged : launch_watch().launches_of(span)) {
        KernelLaunch& launch = made.emplace_back();
        launch.kernel = launch_watch().kernel_of(logged);
        launch.call = logged.call != nullptr ? logged.call : "";
        std::copy_n(logged.grid, 3, launch.grid.begin());
        std::copy_n(logged.block, 3, launch.block.begin());
        launch.shared_bytes = logged.shared_bytes;
        launch.stream = logged.stream;
        launch.correlation_id = logged.correlation_id;
    }
    return made;
}

}  // namespace

void add_op_kernels(SessionFacts& facts) {
    launch_watch();  // made here, where it may throw
    facts.launches_of = launches_of;
    facts.keep_launches = [](const LaunchSpan& span) { launch_watch().keep(span); };
}

void watch_op_kernels(CoreApi& core) noexcept {
    g_measure = core.op_begin;
    core.op_begin = op_begins;
    g_watches = true;
}

bool watches_op_kernels() noexcept { return g_watches; }

LaunchSpan launched_by_op() noexcept {
    uint64_t& first = first_launch();
    if (first == kNoLaunch) return {};
    const LaunchSpan span = launch_watch().since(first);
    first = span.end;  // those of an op around this one come after it
    return span;
}

}  // namespace numsan
