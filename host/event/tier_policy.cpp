#include "host/event/tier_policy.h"

#include <algorithm>

#include "host/base/tensor_bytes.h"
#include "host/ops/op_traits.h"

namespace numsan {

bool TierPolicy::is_boundary(const OpInfo& op) noexcept {
    std::atomic<uint8_t>& known = ops_[op.id % kOps];
    uint8_t kind = op.id < kOps ? known.load(std::memory_order_relaxed) : uint8_t(kUnknown);
    if (kind == kUnknown) {
        kind = traits_of(op.name).has(Role::kBoundary) ? kIsBoundary : kIsInner;
        if (op.id < kOps) known.store(kind, std::memory_order_relaxed);
    }
    return kind == kIsBoundary;
}

void TierPolicy::alarm(int64_t step) noexcept {
    int64_t until = alarm_until_.load(std::memory_order_relaxed);
    if (memory_ == Memory::Device && !is_believed(step, until)) return;
    while (until < step + kAlarmSteps && !alarm_until_.compare_exchange_weak(until, step + kAlarmSteps)) {
    }
}

/// Threads that ask at the same time may both be believed: then a pause is skipped.
bool TierPolicy::is_believed(int64_t step, int64_t until) noexcept {
    int64_t last = last_alarm_.load(std::memory_order_relaxed);
    while (last < step && !last_alarm_.compare_exchange_weak(last, step, std::memory_order_relaxed)) {
    }
    if (step <= until) return false;
    const bool was_silent = step - last > kSilence;
    const int64_t pause = was_silent ? 0 : pause_.load(std::memory_order_relaxed);
    if (step <= until + pause) return false;
    pause_.store(std::clamp(2 * pause, kFirstPause, kLongestPause), std::memory_order_relaxed);
    return true;
}

OutputSet TierPolicy::reads(const OpEvent& event) noexcept {
    const bool boundary = tier_ == Tier::Boundary;
    if (boundary && is_boundary(*event.op)) return OutputSet::all();
    const bool device = memory_ == Memory::Device;
    if (device && !boundary) return {};
    OutputSet read;
    bool all = true;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & (kScannable | kLater)) == 0) continue;
        const bool written_parameter = !device && is_parameter(output) && (output.flags & kWritten) != 0;
        const bool small = bytes_of(output) < (boundary ? kSmallBytes : kTinyBytes);
        if (written_parameter || small) {
            read.add(i);
        } else {
            all = false;
        }
    }
    return all ? OutputSet::all() : read;
}

}  // namespace numsan
