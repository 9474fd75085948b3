#include "interpose/runtime/op_kernels.h"

#include <algorithm>

#include "interpose/cupti/launch_watch.h"

namespace numsan {
namespace {

constexpr uint64_t kNoLaunch = ~uint64_t(0);

// What was called before, written before the first op.
void (*g_begin)() = nullptr;
void (*g_end)(const OpEvent*) = nullptr;

/// The number of the first launch of the op that this thread is in.
uint64_t& first_launch() noexcept {
    static thread_local constinit uint64_t first = kNoLaunch;
    return first;
}

void op_begins() noexcept {
    if (g_begin != nullptr) g_begin();
    first_launch() = launch_watch().next_launch();
}

void op_ends(const OpEvent* event) {
    uint64_t& first = first_launch();
    if (!event->on_device || first == kNoLaunch) return g_end(event);
    OpEvent shown = *event;
    shown.launches = launch_watch().since(first);
    first = shown.launches.end;  // those of an op around this one come after it
    g_end(&shown);
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
        launch.number = logged.number;
        launch.correlation_id = logged.correlation_id;
    }
    return made;
}

}  // namespace

void add_op_kernels(SessionFacts& facts) {
    launch_watch().log_launches();  // made here, where it may throw
    facts.launches_of = launches_of;
    facts.keep_launches = [](const LaunchSpan& span) { launch_watch().keep(span); };
}

void watch_op_kernels(CoreApi& core) noexcept {
    g_begin = core.op_begin;
    g_end = core.op_end;
    core.op_begin = op_begins;
    core.op_end = op_ends;
}

}  // namespace numsan
