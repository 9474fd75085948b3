// What op_end leaves to few ops, out of the way of all others: another file, as it is made of one piece.
#include <algorithm>

#include "host/session/session.h"
#include "host/session/session_thread.h"

namespace numsan {
namespace {

constexpr int64_t kSharedBytes = 1 << 20;  ///< outputs below are scanned by the calling thread alone

}  // namespace

bool Session::near_overflow_is_due(const OpEvent& event, const OpContext& context) noexcept {
    return near_overflow_places_.due(event.op, context.stack, context.step);
}

/// Of programs whose optimizers do not say when they step.
void Session::count_step(const Thread& thread, const OpEvent& event, OpContext& context) noexcept {
    if (steps_.awaits_forward()) {
        steps_.forward(event, &thread, context.on_state);
        context.step = steps_.count();
    }
    if (event.op->op_class != OpClass::Collective && steps_.awaits_update()) steps_.update(event, &thread);
}

/// Which parameters the optimizer writes: until that tells it from others.
void Session::learn_round(Thread& thread, const OpEvent& event) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) != 0 && is_parameter(output))
            rounds_.wrote(thread.optimizer_step, output.storage);
    }
}

/// scan() of any op.
OutputSet Session::scan_any(const OpEvent& event, int64_t seq, OutputSet wanted, Range* ranges,
                            OpTally& tally) noexcept {
    tally = {};
    // A collective's results are being written by other threads now; they are looked at when they are read.
    if (event.op->op_class == OpClass::Allocation || event.op->op_class == OpClass::Collective) {
        std::fill_n(ranges, std::min(event.output_count, kMaxRanges), Range{});
        tally.add(OpTally::without_values(event.op->op_class));
        return {};
    }
    OutputSet bad;
    const bool sampled = ScanClock::samples(seq);
    int64_t small_ns = sampled ? -ScanClock::now() : 0;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (i < kMaxRanges) ranges[i] = Range{};
        if ((output.flags & kScannable) == 0) {
            tally.add((output.flags & kLater) == 0 ? OpOutcome::Integer : OpOutcome::Device);
            continue;
        }
        if (!wanted.contains(i)) {
            tally.add(OpOutcome::Tier);
            continue;
        }
        tally.add(OpOutcome::Scanned);
        const int64_t size = output.numel * static_cast<int64_t>(info(output.dtype).element_bytes());
        tally.bytes += size;
        const ShareWork share = size >= kSharedBytes ? share_.load(std::memory_order_relaxed) : nullptr;
        const bool large = size >= ScanClock::kLargeBytes;
        const int64_t began = large ? ScanClock::now() : 0;
        const Range range = share != nullptr ? scanner_.shared_range(output, share) : scanner_.range(output);
        if (large) {
            const int64_t ns = ScanClock::now() - began;
            scan_clock_.large(ns);
            small_ns -= ns;
        }
        if (range.suspicious) bad.add(i);
        if (i < kMaxRanges) ranges[i] = range;
    }
    if (sampled) scan_clock_.sampled(small_ns + ScanClock::now(), event.output_count, tally.bytes);
    return bad;
}

/// True: a device's, which has been dealt with.
bool Session::is_of_device(Thread& thread, const OpEvent& event) {
    DeviceSide* side = device_side(event);
    if (side != nullptr) device_op(*side, thread, event);
    return side != nullptr;
}

void Session::op_failed(const OpEvent& event) noexcept {
    Thread& thread = this_thread();
    if (thread.busy || !on() || !verdict_.interesting(event, {})) return;
    try {
        OpContext context = context_of(thread, ops_.load(std::memory_order_relaxed));
        context.stack = stacks_.capture();
        verdict_.op_failed(event, context);
    } catch (...) {
        fail("out of memory or a failure inside op_failed");
    }
}

}  // namespace numsan
